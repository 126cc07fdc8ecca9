"""A service that reads names of directories, one per line, and hashes them one after the other, reporting
progress; the line `stop` ends the last job: hash_service.py.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

import bit_crafts


def hash_one(path: str, cancel: bit_crafts.Cancel) -> None:
    def report(now: bit_crafts.Progress) -> None:
        print(f"{path}: {now.bytes} bytes", flush=True)

    try:
        files = bit_crafts.iter_hash(path, cancel=cancel, progress=report)
        for file in files:
            print(f"{file.hexdigest}  {file.path}", flush=True)
        print(f"{path}: done, {len(files.result().errors)} errors", flush=True)
    except bit_crafts.CancelledError:
        print(f"{path}: stopped", flush=True)
    except bit_crafts.Error as error:
        print(error, flush=True)


with ThreadPoolExecutor(max_workers=1) as worker:
    cancel = bit_crafts.Cancel()
    for line in map(str.rstrip, sys.stdin):
        if line == "stop":
            cancel.stop()
        else:
            cancel = bit_crafts.Cancel()
            worker.submit(hash_one, line, cancel)
