#!/usr/bin/env bash
#SBATCH --job-name=quantmf
#SBATCH --array=0-8
#SBATCH --requeue
#SBATCH --cpus-per-task=8
#SBATCH --mem=16G
# Eight shards and the task that reduces: sbatch slurm.sh, in a folder that all nodes see, beside work.sh and the folder "fit".
exec bash work.sh fit 8 "$SLURM_ARRAY_TASK_ID"
