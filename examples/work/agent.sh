#!/bin/sh
# An agent that is a plain script: it does five roles of an issue under issue-to-pr. Each role leaves its
# contract in the file that GIT_HANDOFF_CONTRACT names; a real agent reads the prompt instead of a case.
set -eu
cat > /dev/null
issue=$GIT_HANDOFF_ISSUE
handed() {
  git handoff new --issue "$issue" --to "$@" > "$GIT_HANDOFF_CONTRACT"
}
case $GIT_HANDOFF_AGENT in
  prep-agent)
    handed implementer-agent --set branch="$GIT_HANDOFF_BRANCH" --set workspace_type=worktree --set port=3000 \
      --set validation.dependencies='none needed' --set validation.build=passed --set validation.dev_server='n/a: a script' ;;
  implementer-agent)
    mkdir -p changes
    echo 'It works' > "changes/$issue.txt"
    git add changes
    git diff --cached --quiet || git commit -q -m "Work on issue $issue"
    handed reviewer-agent --set summary='The change is listed' --set tests_added=0 --set coverage=100% \
      --set pr_number="$issue" --set pr_url="https://github.com/octo/parcels/pull/$issue" ;;
  reviewer-agent)
    test -s "changes/$issue.txt"
    handed validator-agent --set summary='It says what changed' ;;
  validator-agent)
    # The merge: on a forge, `gh pr merge`.
    git fetch -q origin main
    git checkout -q --detach origin/main
    git merge -q --no-ff --no-edit "$GIT_HANDOFF_BRANCH"
    git push -q origin HEAD:main
    handed closer-agent --set merge_status=merged --set merge_sha="$(git rev-parse HEAD)" --set merge_strategy=merge \
      --set validation_summary.tests=passed --set validation_summary.lint=passed --set validation_summary.type_check=passed \
      --set validation_summary.coverage=100% --set validation_summary.security='not run: a script' ;;
  closer-agent)
    handed workflow-complete --set summary='It is merged' --set metrics.review_iterations=1 --set metrics.total_commits=1 \
      --set metrics.tests_added=0 --set metrics.coverage=100% --set actions_taken='Closed the issue' ;;
esac
