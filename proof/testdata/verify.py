"""An independent verifier of proofs, written from docs/format/proof.md alone.

    python3 verify.py FILE       prints a summary, or fails with a message

Only hashlib, json and base64 are used; Ed25519 is that of RFC 8032.
"""
import base64
import hashlib
import json
import sys

P = 2**255 - 19
Q = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def check(ok, message):
    if not ok:
        sys.exit("not valid: " + message)


# Ed25519, with points in extended coordinates.
def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(n, p):
    out = (0, 1, 1, 0)
    while n > 0:
        if n & 1:
            out = add(out, p)
        p, n = add(p, p), n >> 1
    return out


def same(p, q):
    return (p[0] * q[2] - q[0] * p[2]) % P == 0 and (p[1] * q[2] - q[1] * p[2]) % P == 0


def point(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    check(y < P, "a point")
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    check((x * x - square) % P == 0 and not (x == 0 and sign), "a point")
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


BASE = point((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def ed25519(public, message, signature):
    r, s = signature[:32], int.from_bytes(signature[32:], "little")
    h = int.from_bytes(hashlib.sha512(r + public + message).digest(), "little") % Q
    return len(signature) == 64 and s < Q and same(times(s, BASE), add(point(r), times(h, point(public))))


# Protocol buffers: the fields of a message, by number; the last one counts.
def varint(data, at):
    shift = out = 0
    while True:
        out |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return out, at


def fields(data):
    out, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            out[tag >> 3], at = varint(data, at)
            continue
        size, at = varint(data, at) if tag & 7 == 2 else ({1: 8, 5: 4}[tag & 7], at)
        out[tag >> 3], at = data[at : at + size], at + size
    return out


def directory(data):
    """Yields (is a directory, id) of the entries of a node."""
    check(data[:5] == b"stWd\x01", "a directory node")
    count, at = varint(data, 5)
    for _ in range(count):
        kind = data[at]
        _, at = varint(data, at + 1)  # mode
        size, at = varint(data, at)
        at += size
        if kind & 127 != 2:
            _, at = varint(data, at)
        yield kind == 2, data[at : at + 32]
        at += 32
    check(at == len(data), "a directory node")


class Proof:
    def __init__(self, raw):
        check(raw.endswith(b"\n"), "it is cut off")
        lines = raw.split(b"\n")[:-1]
        check(len(lines) > 1, "it is cut off")
        self.signature(raw[: -len(lines[-1]) - 1], lines[-1])
        self.lines = [json.loads(text) for text in lines[:-1]]
        self.head = self.lines.pop(0)
        check(self.head["format"] == "stet-proof" and self.head["version"] == 1, "another format")
        self.nodes, self.rows = set(), 0
        self.log()
        check(self.tree(self.head["groups"], self.group).hex() == self.head["root"], "the root")
        self.blobs()

    def signature(self, body, last):
        end = json.loads(last)
        key, signature = end["key"], base64.b64decode(end["signature"])
        check(last == b'{"key":"%s","signature":"%s"}' % (key.encode(), base64.b64encode(signature)), "the last line")
        name, text = key.split(" ")
        public = base64.b64decode(text)
        check(name == "ssh-ed25519" and public[:19] == b"\0\0\0\x0bssh-ed25519\0\0\0\x20" and len(public) == 51, "the key")
        check(ed25519(public[19:], b"stet-proof-v1\0" + sha256(body), signature), "the signature")

    def value(self, line):
        self.rows += 1
        value, key = base64.b64decode(line["value"]), line["key"]
        if key.startswith("stet:checkpoint:"):
            self.nodes.add(fields(value).get(6, b""))
        return key, value

    def log(self):
        if not self.lines or "after" not in self.lines[0]:
            return
        start = self.lines.pop(0)
        link = bytes.fromhex(start["link"])
        for seq in range(start["after"] + 1, self.head["log"]["entries"] + 1):
            line = self.lines.pop(0)
            if "digest" in line:
                digest = bytes.fromhex(line["digest"])
            else:
                key, value = self.value(line)
                found = fields(value)
                check(key == "stet:op:%016x" % seq and found.get(18, link) == link, "entry %d" % seq)
                digest = found.get(19) or sha256(value)
            link = sha256(b"\x03", link, digest)
        check(link.hex() == self.head["log"]["link"], "the end of the log")

    def tree(self, n, leaf):
        if n == 0:
            return sha256()
        if self.lines[0].get("hidden") == n:
            return bytes.fromhex(self.lines.pop(0)["hash"])
        if n == 1:
            return leaf(self.lines.pop(0))
        k = 1 << (n - 1).bit_length() - 1
        left = self.tree(k, leaf)
        return sha256(b"\x01", left, self.tree(n - k, leaf))

    def group(self, line):
        name, rows = line["group"].encode(), line["rows"]
        return sha256(b"\x02", len(name).to_bytes(4, "big"), name, rows.to_bytes(8, "big"), self.tree(rows, self.row))

    def row(self, line):
        key, value = self.value(line)
        return sha256(b"\0", len(key.encode()).to_bytes(4, "big"), key.encode(), sha256(value))

    def blobs(self):
        """Checks directories; contents are what their hashes are."""
        waiting, count = self.nodes - {b""}, 0
        for line in self.lines:
            if "gone" in line:
                waiting.discard(bytes.fromhex(line["gone"]))
                continue
            data = base64.b64decode(line["blob"])
            count += 1
            if sha256(data) in waiting:
                waiting.remove(sha256(data))
                below = {i for is_dir, i in directory(data) if is_dir} - self.nodes
                self.nodes |= below
                waiting |= below
            else:
                check(self.head["contents"], "a blob that nothing names")
        check(not waiting, "%d directories are missing" % len(waiting))
        what = self.head.get("conversation") or self.head["checkpoint"]
        print("ok %s %s rows %d blobs %d" % (what, self.head["time"], self.rows, count))


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        Proof(file.read())
