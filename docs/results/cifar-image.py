"""The picture of CIFAR-10 that the authors of arXiv 2509.20323 fit in figure 5, as `figure-5` reads it.

usage: cifar-image.py CIFAR DATA

writes DATA/cifar/image1000.png: picture 1000, counted from 0, of the aeroplanes and cars of the test part. CIFAR is the folder of the
binary version, with test_batch.bin, or one with the test part as a JPEG XL picture of 100×100 pictures and the labels of all
60000 (cifar10_test_batch.jxl, cifar10_labels_train5_test1.bin), which needs the package imagecodecs. Writes the PNG file without further packages.
"""

import pathlib
import struct
import sys
import zlib


def pictures(folder):
    """Labels, and pictures as rows of pixels of red, green and blue."""
    batch = folder / "test_batch.bin"
    if batch.exists():
        records = [record for record in zip(*[iter(batch.read_bytes())] * 3073)]
        labels = [record[0] for record in records]
        return labels, lambda at: bytes(records[at][1 + c * 1024 + p] for p in range(1024) for c in range(3))
    import imagecodecs

    whole = imagecodecs.jpegxl_decode((folder / "cifar10_test_batch.jxl").read_bytes())
    labels = (folder / "cifar10_labels_train5_test1.bin").read_bytes()[50000:]
    return labels, lambda at: whole[32 * (at // 100) :, 32 * (at % 100) :][:32, :32, :3].tobytes()


def png(pixels, side):
    """An RGB picture as a PNG file."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + pixels[3 * side * row :][: 3 * side] for row in range(side))
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]) / "cifar"
    labels, picture = pictures(folder)
    chosen = [at for at, label in enumerate(labels) if label in (0, 1)]
    out.mkdir(parents=True, exist_ok=True)
    (out / "image1000.png").write_bytes(png(picture(chosen[1000]), 32))
    print(f"picture {chosen[1000]} of the test part, of {len(chosen)} aeroplanes and cars, in {out / 'image1000.png'}")


main()
