"""A service: hashes several trees at a time, reports their progress, and ends them on SIGTERM."""

import asyncio
import signal
import sys

import bit_crafts


async def hash_tree(path: str, cancel: bit_crafts.Cancel) -> bool:
    """Hashes one tree on a thread, while others go on."""
    done = bit_crafts.Progress(0, 0, None, None)

    def report(now: bit_crafts.Progress) -> None:
        nonlocal done
        done = now

    def work() -> bit_crafts.Hashed:
        return bit_crafts.hash(path, algorithm="sha256", cancel=cancel, progress=report)

    try:
        hashed = await asyncio.get_running_loop().run_in_executor(None, work)
        print(f"{path}: {len(hashed)} files")
        return hashed.is_complete
    except bit_crafts.CancelledError:
        print(f"{path}: ended after {done.files} files")
    except bit_crafts.Error as error:
        print(error, file=sys.stderr)
    return False


async def main(*paths: str) -> int:
    cancel = bit_crafts.Cancel()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, cancel.stop)
    return 0 if all(await asyncio.gather(*(hash_tree(path, cancel) for path in paths))) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
