#!/usr/bin/env bash
# What one task of many does: work.sh FOLDER SHARDS INDEX. The tasks 0 to SHARDS-1 have a shard each, the task SHARDS reduces. All of
# them run at the same time; one that was stopped goes on when it is started again.
set -euo pipefail
folder=$1 shards=$2 index=$3
if [ "$index" -lt "$shards" ]; then
  exec quantmf shard step -wait -shard "$index" "$folder"
fi
quantmf shard reduce -wait "$folder"
quantmf shard finish -o "$folder.model" "$folder"
