#!/bin/sh
# A requesting agent of the five-step protocol, with curl: requesting-agent.sh URL [TOPIC]
# URL is where an agent is reached, such as http://127.0.0.1:8080/agents/browse-extract
set -eu
url=${1:?say whom to ask: requesting-agent.sh URL [TOPIC]}
topic=${2:-Why is the sky blue?}

# The text of a member of JSON in one line, as far as that is plain.
member() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
# A text as a string of JSON.
quoted() { printf '%s' "$1" | tr '\n\t' '  ' | sed 's/[\\"]/\\&/g; s/^/"/; s/$/"/'; }

# 1: who is it, and where are tasks submitted?
submit=$(curl -fsS "$url/.well-known/agent.json" | grep -o '"endpoints":{[^}]*}' | member submit_task)
echo "1. discovered $submit"

# 2: what is it to do?
input="{\"search_topic\":$(quoted "$topic"),\"extraction_instruction\":$(quoted "Summarize web results for: '$topic'")}"
echo "2. generated the task: $input"

# 3: it is asked to do it.
task="{\"requesting_agent_id\":\"requesting-agent-sh\",\"skill_id\":\"browse_extract\",\"input_data\":$input}"
submitted=$(curl -sS -H 'Content-Type: application/json' --data-binary "$task" "$submit")
updates=$(printf '%s' "$submitted" | member updates_url)
[ -n "$updates" ] || { echo "3. refused: $submitted" >&2; exit 1; }
echo "3. submitted, updates at $updates"

# 4 and 5: what happens is heard, and the last that is heard is the result.
last=$(curl -sSN "$updates" | sed -un 's/^data: //p' | tee /dev/stderr | tail -n 1)
case $last in
  *'"status":"completed"'*) echo "5. completed" ;;
  *) echo "5. it did not complete" >&2; exit 1 ;;
esac
