#!/usr/bin/env bash
# A fit in shards on one machine, round by round: rounds.sh FOLDER SHARDS AT-ONCE
# The folder has a plan: quantmf shard plan -shards SHARDS -o FOLDER MATRIX. Whatever stops the script, the same line goes on.
set -euo pipefail
folder=$1 shards=$2 at_once=$3
round=0
while [ "$round" != over ]; do
  seq 0 $((shards - 1)) | xargs -P "$at_once" -I{} quantmf shard step -round "$round" -shard {} "$folder"
  round=$(quantmf shard reduce -round "$round" "$folder")
done
