"""Writes the same operations as a trace of each form, and prints what they come to."""

import pathlib
import random
import struct
import sys

directory, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2])
draw = random.Random(seed)
operations, time_us = [], 1_000_000
for _ in range(200):
    time_us += draw.randrange(1, 400)
    size = 4096 * draw.randrange(1, 17)
    offset = 4096 * draw.randrange((800 << 20) // 4096)
    operations.append((time_us, draw.random() < 0.4, offset, size))


def lines(form):
    return "".join(form(*one) + "\n" for one in operations)


texts = {
    "iolog-2": "fio version 2 iolog\nd add\nd open\n"
    + lines(lambda t, r, o, s: f"d {'read' if r else 'write'} {o} {s}")
    + "d close\n",
    "iolog-3": "fio version 3 iolog\n0 d add\n0 d open\n"
    + lines(lambda t, r, o, s: f"{t} d {'read' if r else 'write'} {o} {s}")
    + f"{time_us} d close\n",
    "blkparse": lines(
        lambda t, r, o, s: (
            f"8,0 1 7 {t / 1e6:.9f} 42 D {'R' if r else 'W'} {o // 512} + {s // 512} [x]"
        )
    ),
    "msr": lines(lambda t, r, o, s: f"{t * 10},srv,0,{'Read' if r else 'Write'},{o},{s},9"),
    "alibaba": lines(lambda t, r, o, s: f"7,{'R' if r else 'W'},{o},{s},{t}"),
    "tencent": lines(lambda t, r, o, s: f"{t // 10**6},{o // 512},{s // 512},{0 if r else 1},8"),
    "spc": lines(lambda t, r, o, s: f"0,{o // 512},{s},{'R' if r else 'w'},{t / 1e6:.6f}"),
    "mqsim": lines(lambda t, r, o, s: f"{t * 1000} 0 {o // 512} {s // 512} {1 if r else 0}"),
    "table": "op,time_us,size_sectors,offset_bytes\n"
    + lines(lambda t, r, o, s: f"{'read' if r else 'write'},{t},{s // 512},{o}"),
}
for name, text in texts.items():
    (directory / name).write_text(text)
EVENT = struct.Struct("<IIQQIIIIIHH")
MAGIC, ISSUED, READ, WRITE = 0x65617407, 7, 1 << 16, 2 << 16
events = (
    (MAGIC, 1, t * 1000, o // 512, s, ISSUED | (READ if r else WRITE), 42, 8, 0, 0, 0)
    for t, r, o, s in operations
)
(directory / "blktrace").write_bytes(b"".join(EVENT.pack(*event) for event in events))
for is_read in (True, False):
    sizes = [size for _, read, _, size in operations if read == is_read]
    print(len(sizes), sum(sizes))
