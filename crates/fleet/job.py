"""One tree read by a Spark cluster: every task runs bc for one part of it.

    spark-submit job.py --root /shared/tree --parts 64 --into /shared/manifests/tree

The tree and the folder are on file systems that all executors and the driver mount, at the same
path; 'bc' (or --bc) is on all of them. Each task reads its part and writes it as one file, by
Spark's commit protocol: a task that is run again, because its executor was lost or was slow, leaves
nothing twice. The driver then puts the parts together: 'bc integrity merge' refuses what is
missing, and names what was moved meanwhile. The result is TREE.jsonl in the folder, as one run of
'bc integrity manifest' would have written it, and a Parquet table of its entries beside it.
"""

import argparse
import pathlib
import shlex
import shutil
import subprocess
import sys

from pyspark.sql import SparkSession

# Reads one line, 'MACHINE<tab>ROOT<tab>I/N', and prints the manifest of that part. A machine that
# is named has to be this one. Exit codes 0 and 1 (something could not be read, which the manifest
# says) pass if the manifest is whole; everything else fails the task, which Spark then runs again.
TASK = r"""
set -u
tab=$(printf '\t')
while IFS=$tab read -r machine root shard; do
  here=$(cat /etc/machine-id 2>/dev/null || echo unknown)
  if [ "$machine" != any ] && [ "$machine" != "$here" ]; then
    echo "task for machine $machine on machine $here" >&2
    exit 1
  fi
  part=$(mktemp) || exit 1
  trap 'rm -f "$part"' EXIT
  "$BC" integrity manifest --quiet --shard="$shard" $OPTIONS "$root" >"$part"
  code=$?
  [ "$code" -le 1 ] || exit "$code"
  tail -n 1 "$part" | grep -q '^{"type":"trailer"' || exit 1
  cat "$part" || exit 1
done
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", required=True, help="the tree, at this path on all executors")
    parser.add_argument("--into", required=True, help="a folder that all executors mount")
    parser.add_argument("--parts", type=int, default=64, help="how many tasks share the tree")
    parser.add_argument("--machine", default="any", help="machine id that every task has to find")
    parser.add_argument("--bc", default="bc", help="the program")
    parser.add_argument("--options", default="", help="further options of bc integrity manifest")
    return parser.parse_args()


def record(context, args, parts):
    """Has every part written to a file of its own."""
    shards = [f"{i}/{args.parts}" for i in range(1, args.parts + 1)]
    rows = ["\t".join([args.machine, args.root, shard]) for shard in shards]
    # One row is one task. Without checkCode a task that failed would look like an empty one.
    task = context.parallelize(rows, len(rows)).pipe(
        "sh -c " + shlex.quote(TASK),
        env={"BC": args.bc, "OPTIONS": args.options, "PATH": "/usr/local/bin:/usr/bin:/bin"},
        checkCode=True,
    )
    task.saveAsTextFile(parts.as_uri())


def merge(args, parts, manifest):
    """Puts the parts together; what could not be, or was moved meanwhile, is said by bc."""
    files = sorted(str(path) for path in parts.glob("part-*"))
    command = [args.bc, "integrity", "merge", "--output", str(manifest), *files]
    code = subprocess.run(command, check=False).returncode
    if code > 1:
        sys.exit(code)
    return code


def table(spark, args, manifest, into):
    """Writes the entries as Parquet, by the views that bc prints."""
    command = [args.bc, "integrity", "sql", "--engine=spark", str(manifest)]
    views = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # A name that holds a semicolon at the end of a line would be cut in two, and refused.
    for statement in views.split(";\n"):
        lines = [line for line in statement.splitlines() if not line.startswith("--")]
        if "".join(lines).strip():
            spark.sql("\n".join(lines))
    entries = spark.table("entries")
    entries.write.mode("overwrite").partitionBy("place").parquet(into.as_uri())
    return entries.count()


def main():
    args = arguments()
    spark = SparkSession.builder.appName("bc integrity").getOrCreate()
    into = pathlib.Path(args.into).resolve()
    into.mkdir(parents=True, exist_ok=True)
    name = pathlib.Path(args.root).name or "root"
    parts = into / f"{name}.parts-{spark.sparkContext.applicationId}"
    manifest = into / f"{name}.jsonl"
    record(spark.sparkContext, args, parts)
    code = merge(args, parts, manifest)
    shutil.rmtree(parts)
    count = table(spark, args, manifest, into / f"{name}.parquet")
    print(f"{manifest}: {count} entries")
    spark.stop()
    sys.exit(code)


if __name__ == "__main__":
    main()
