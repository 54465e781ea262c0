//! Finds loops: work that returned to an agent that had handed it on.

use std::collections::HashMap;

use super::{Loop, NodeId};

/// A handoff, reduced to its route.
pub(super) struct Leg {
    pub(super) number: u32,
    pub(super) from: NodeId,
    /// The agent that has it now.
    pub(super) to: NodeId,
    /// The number of the handoff that it follows.
    pub(super) follows: Option<u32>,
    /// The number of the request that it answers.
    pub(super) answers: Option<u32>,
}

/// The agents that work has passed through; loops that were completed are removed.
#[derive(Clone)]
struct Path {
    /// Each agent, and the number of the handoff by which the work left it.
    agents: Vec<(NodeId, u32)>,
}

/// Finds every loop. An answer returns to the requester, which is not a loop.
pub(super) fn loops(legs: &[Leg]) -> Vec<Loop> {
    let mut paths: HashMap<u32, Path> = HashMap::new();
    let mut found: Vec<Loop> = Vec::new();
    for leg in legs {
        if let Some(request) = leg.answers {
            // The work is back with the requester, where it was before the request.
            let path = paths.get(&request).cloned();
            paths.extend(path.map(|path| (leg.number, path)));
            continue;
        }
        let before = leg.follows.and_then(|number| paths.get(&number)).cloned();
        let mut path = before.unwrap_or_else(|| Path { agents: Vec::new() });
        let position =
            |path: &Path, agent| path.agents.iter().position(|(known, _)| *known == agent);
        let left = position(&path, leg.from).unwrap_or(path.agents.len());
        path.agents.truncate(left);
        path.agents.push((leg.from, leg.number));
        let start = position(&path, leg.to);
        match start {
            Some(start) => {
                let round: Vec<(NodeId, u32)> = path.agents.drain(start + 1..).collect();
                let (back_at, first) = path.agents[start];
                // A handoff to oneself is not a loop.
                if !round.is_empty() {
                    let agents = std::iter::once(back_at).chain(round.iter().map(|(a, _)| *a));
                    add(&mut found, agents.collect(), (first, leg.number));
                }
            }
            None => path.agents.push((leg.to, leg.number)),
        }
        paths.insert(leg.number, path);
    }
    found.sort_by_key(|one| std::cmp::Reverse(one.rounds.len()));
    found
}

/// Counts a round. Loops are equal if they have the same agents in the same cyclic order.
fn add(found: &mut Vec<Loop>, mut agents: Vec<NodeId>, round: (u32, u32)) {
    let count = agents.len();
    let same = |known: &&mut Loop| {
        let others = &known.agents[..known.agents.len() - 1];
        others.len() == count && {
            let shift = others.iter().position(|a| *a == agents[0]);
            shift.is_some_and(|shift| (0..count).all(|i| others[(i + shift) % count] == agents[i]))
        }
    };
    if let Some(known) = found.iter_mut().find(same) {
        known.rounds.push(round);
        return;
    }
    agents.push(agents[0]);
    found.push(Loop {
        agents,
        rounds: vec![round],
    });
}

#[cfg(test)]
mod tests {
    use super::{Leg, NodeId, loops};

    fn leg(number: u32, from: usize, to: usize, follows: u32) -> Leg {
        Leg {
            number,
            from: NodeId(from),
            to: NodeId(to),
            follows: Some(follows).filter(|n| *n > 0),
            answers: None,
        }
    }

    type Round = (u32, u32);

    fn found(legs: &[Leg]) -> Vec<(Vec<usize>, Vec<Round>)> {
        let all = loops(legs).into_iter();
        all.map(|l| (l.agents.iter().map(|a| a.0).collect(), l.rounds))
            .collect()
    }

    #[test]
    fn straight_work_goes_round_nowhere() {
        assert_eq!(
            found(&[leg(1, 0, 1, 0), leg(2, 1, 2, 1), leg(3, 2, 3, 2)]),
            []
        );
    }

    #[test]
    fn rounds_are_counted_wherever_they_begin() {
        let legs = [
            leg(1, 0, 1, 0),
            leg(2, 1, 2, 1),
            leg(3, 2, 1, 2),
            leg(4, 1, 2, 3),
            leg(5, 2, 1, 4),
            leg(6, 1, 3, 5),
            leg(7, 3, 2, 6),
            leg(8, 2, 1, 7),
        ];
        assert_eq!(
            found(&legs),
            [
                (vec![1, 2, 1], vec![(2, 3), (4, 5)]),
                (vec![1, 3, 2, 1], vec![(6, 8)])
            ]
        );
        // The same loop, starting at 2.
        let legs = [
            leg(1, 2, 1, 0),
            leg(2, 1, 2, 1),
            leg(3, 2, 1, 2),
            leg(4, 1, 2, 3),
        ];
        assert_eq!(found(&legs), [(vec![2, 1, 2], vec![(1, 2), (3, 4)])]);
    }

    #[test]
    fn a_failure_that_is_tried_again_is_no_round_and_siblings_are_apart() {
        // 3 reports to 2 that it failed, and 2 tries again.
        let legs = [leg(1, 1, 2, 0), leg(2, 2, 3, 1), leg(3, 2, 4, 1)];
        assert_eq!(found(&legs), []);
    }

    #[test]
    fn an_answer_is_no_round_and_a_request_back_is_one() {
        let answer = |number, from, to, answers| Leg {
            answers: Some(answers),
            ..leg(number, from, to, answers)
        };
        let legs = [
            leg(1, 0, 1, 0),
            answer(2, 1, 0, 1),
            leg(3, 0, 1, 0),
            answer(4, 1, 0, 3),
        ];
        assert_eq!(found(&legs), []);
        let legs = [leg(1, 0, 1, 0), leg(2, 1, 0, 1), answer(3, 0, 1, 2)];
        assert_eq!(found(&legs), [(vec![0, 1, 0], vec![(1, 2)])]);
    }

    #[test]
    fn work_for_oneself_is_no_round() {
        assert_eq!(found(&[leg(1, 0, 0, 0), leg(2, 0, 1, 1)]), []);
    }
}
