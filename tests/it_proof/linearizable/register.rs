//! An issue's first two handoffs as a register: what each call does to them, one after the other.

use serde::Serialize;

/// A clone, which is a worker of its own.
pub(crate) type Worker = u8;

/// What a clone asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub(crate) enum Call {
    /// Sends the contract that opens the issue.
    Open,
    /// Claims one of the handoffs.
    Claim(usize, Worker),
    /// Takes it over from another worker.
    TakeOver(usize, Worker),
    /// Completes it.
    Complete(usize, Worker),
    /// Sends the contract that completes the first and starts the second.
    SendOn(Worker),
    /// Reads both, once all is over.
    Read,
}

/// What it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub(crate) enum Answer {
    /// It was done, and this is the claim that holds the handoff now.
    Done { token: Option<u32> },
    /// It had been done before; nothing was written.
    Repeated { token: Option<u32> },
    /// It may not be done.
    Refused,
    /// It may have been done, or be done later, or never.
    Unknown,
    /// What both are.
    Is(Register),
}

/// One handoff.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub(crate) enum Handoff {
    #[default]
    None,
    Pending,
    Held {
        worker: Worker,
        token: u32,
    },
    /// Completed: by this worker, if not by a contract.
    Completed {
        by: Option<Worker>,
    },
}

/// Both handoffs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Register(pub(crate) [Handoff; 2]);

impl Register {
    /// What a call makes of it, and is told.
    pub(crate) fn apply(mut self, call: Call) -> (Self, Answer) {
        use Handoff as H;
        let [first, second] = self.0;
        let done = |token| Answer::Done { token };
        let repeated = |token| Answer::Repeated { token };
        let answer = match call {
            Call::Read => Answer::Is(self),
            Call::Open if first == H::None => {
                self.0[0] = H::Pending;
                done(None)
            }
            Call::Open => repeated(first.token()),
            Call::SendOn(_) if second != H::None => repeated(second.token()),
            Call::SendOn(worker) => match first {
                H::Held { worker: own, .. } if own == worker => {
                    self.0 = [H::Completed { by: None }, H::Pending];
                    done(None)
                }
                H::Completed { .. } => {
                    self.0[1] = H::Pending;
                    done(None)
                }
                _ => Answer::Refused,
            },
            Call::Claim(at, worker) => match self.0[at] {
                H::Pending => {
                    self.0[at] = H::Held { worker, token: 1 };
                    done(Some(1))
                }
                H::Held { worker: own, token } if own == worker => repeated(Some(token)),
                _ => Answer::Refused,
            },
            Call::TakeOver(at, worker) => match self.0[at] {
                H::Held { worker: own, token } if own != worker => {
                    let token = token + 1;
                    self.0[at] = H::Held { worker, token };
                    done(Some(token))
                }
                // A claim of its own is no takeover that was made before.
                H::Held { token, .. } if token > 1 => repeated(Some(token)),
                _ => Answer::Refused,
            },
            Call::Complete(at, worker) => match self.0[at] {
                H::Held { worker: own, .. } if own == worker => {
                    self.0[at] = H::Completed { by: Some(worker) };
                    done(None)
                }
                H::Completed { by: Some(own) } if own == worker => repeated(None),
                _ => Answer::Refused,
            },
        };
        (self, answer)
    }
}

impl Handoff {
    fn token(self) -> Option<u32> {
        match self {
            Self::Held { token, .. } => Some(token),
            _ => None,
        }
    }
}
