#!/bin/sh
# An agent that is a script: does its role's part of an issue. Some first runs go wrong, each in
# another way; FAULTS is the folder that counts them.
set -u
cat > /dev/null
issue=$GIT_HANDOFF_ISSUE
# What an attempt left that died.
rm -f half.txt
if [ -n "${FAULTS:-}" ]; then
  count="$FAULTS/$GIT_HANDOFF_ID"
  runs=$(cat "$count" 2> /dev/null || echo 0)
  echo $((runs + 1)) > "$count"
  if [ "$runs" = 0 ]; then
    case $(($(printf %s "$GIT_HANDOFF_ID" | cksum | cut -d ' ' -f 1) % 14)) in
      0) echo 'the build fails'; exit 3 ;;
      1) sleep 600 ;;
      2) setsid sleep 600 & sleep 600 & ;;
      3) trap '' TERM; while :; do sleep 1; done ;;
      4) echo '<handoff><from>nobody</from></handoff>' > "$GIT_HANDOFF_CONTRACT"; exit 0 ;;
      5) echo half > half.txt; kill -9 $$ ;;
      6) exit 0 ;;
    esac
  fi
fi
case $GIT_HANDOFF_AGENT in
  prep-agent)
    git handoff send --to implementer-agent --issue "$issue" --set branch="$GIT_HANDOFF_BRANCH" --set workspace_type=worktree \
      --set port=3000 --set validation.dependencies=installed --set validation.build=passed \
      --set validation.dev_server=started ;;
  implementer-agent)
    echo "$issue" > "work-$issue.txt"
    git add "work-$issue.txt" && { git diff --cached --quiet || git commit -q -m "Work on $issue"; } || exit 1
    git handoff new --to reviewer-agent --issue "$issue" --set summary=done --set tests_added=1 --set coverage=90% \
      --set pr_number="$issue" --set pr_url="https://github.com/octo/parcels/pull/$issue" > "$GIT_HANDOFF_CONTRACT" ;;
  reviewer-agent)
    test -f "work-$issue.txt" || exit 1
    git handoff new --to validator-agent --issue "$issue" --set summary=good > "$GIT_HANDOFF_CONTRACT" ;;
  validator-agent)
    # Somebody else may merge at the same time.
    tries=0
    until git fetch -q origin main && git merge -q --no-edit origin/main && git push -q origin HEAD:main; do
      tries=$((tries + 1))
      [ "$tries" -lt 20 ] || exit 1
    done
    git handoff send --to closer-agent --issue "$issue" --set merge_status=merged --set merge_sha="$(git rev-parse HEAD)" \
      --set merge_strategy=merge --set validation_summary.tests=passed --set validation_summary.lint=passed \
      --set validation_summary.type_check=passed --set validation_summary.coverage=90% \
      --set validation_summary.security='not run: a script' ;;
  closer-agent)
    git handoff send --to workflow-complete --issue "$issue" --set summary='It works' --set metrics.review_iterations=1 \
      --set metrics.total_commits=1 --set metrics.tests_added=1 --set metrics.coverage=90% \
      --set actions_taken='Closed it' ;;
esac
