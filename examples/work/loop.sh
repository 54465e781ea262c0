#!/bin/sh
# loop.sh ROLE COMMAND…: claims what waits for a role, runs the command for it in a worktree, and hands the
# result on, until nothing waits. It is what `git handoff work --as ROLE --until-idle -- COMMAND…` replaces;
# what it leaves out is in docs/work.md.
set -u
role=$1
shift
GIT_HANDOFF_AGENT=$role GIT_HANDOFF_WORKER=loop-$role
export GIT_HANDOFF_AGENT GIT_HANDOFF_WORKER
top=$(git rev-parse --show-toplevel)
GIT_HANDOFF_CONTRACT=$(mktemp)
export GIT_HANDOFF_CONTRACT
while claimed=$(git handoff claim --next --json); do
  GIT_HANDOFF_ID=$(printf '%s\n' "$claimed" | sed -n 's/^ *"id": "\([^"]*\)".*/\1/p' | head -n 1)
  GIT_HANDOFF_ISSUE=${GIT_HANDOFF_ID%.*}
  GIT_HANDOFF_BRANCH=handoff/$GIT_HANDOFF_ISSUE
  export GIT_HANDOFF_ID GIT_HANDOFF_ISSUE GIT_HANDOFF_BRANCH
  place=$top.loop/$GIT_HANDOFF_ISSUE
  if [ ! -d "$place" ]; then
    git worktree add -q "$place" "$GIT_HANDOFF_BRANCH" 2> /dev/null ||
      git worktree add -q -b "$GIT_HANDOFF_BRANCH" "$place" || exit 1
  fi
  : > "$GIT_HANDOFF_CONTRACT"
  if git handoff prime | (cd "$place" && "$@"); then
    git push -q origin "$GIT_HANDOFF_BRANCH"
    (cd "$place" && git handoff send "$GIT_HANDOFF_CONTRACT")
  else
    (cd "$place" && git handoff fail "$GIT_HANDOFF_ID" --message 'the command failed' --snapshot)
  fi
done
rm -f "$GIT_HANDOFF_CONTRACT"
