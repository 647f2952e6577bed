#!@PYTHON@ -IS
"""One emulated command: takes its words to the emulator's server and prints what it answers.

It must start fast, so it imports nothing that is not built into the interpreter. It is copied beside
the emulator's socket with the words between @ filled in, and every command is a symbolic link to the
copy.

What goes out are length-prefixed byte strings: name, working directory, script, words, environment.
What comes back is "RC OUT ERR WAIT" and a newline, then OUT bytes for standard output and ERR bytes
for standard error; with WAIT the command never ends by itself.
"""

import _socket
import os
import sys

FLAVOUR = "@FLAVOUR@"
SERVER = "@SERVER@"
ENVIRONMENT = ("PBS", "LSF", "LSB", "BSUB", "HEADWAY")
ALSO = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "MAIL", "TZ")
#: Options of qsub that take a value, and options of bsub that take none.
QSUB_VALUES = "aAcCeIjJklmMNopPqrRSuvWw"
BSUB_FLAGS = ("-H", "-r", "-rn", "-x", "-N", "-B", "-I", "-Ip", "-Is", "-K", "-V", "-h", "-XF", "-ar")


def main():
    path, words = sys.argv[0], sys.argv[1:]
    base, _, name = path.rpartition("/")
    environment = [
        f"{key}={value}" for key, value in os.environ.items() if key.startswith(ENVIRONMENT) or key in ALSO
    ]
    message = b"".join(
        framed(part)
        for part in (
            name.encode(),
            os.getcwdb(),
            script(name, words),
            b"".join(framed(os.fsencode(word)) for word in words),
            b"".join(framed(os.fsencode(entry)) for entry in environment),
        )
    )
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        # A socket's path has little room, so it is named from where it is.
        os.chdir(f"{base}/..")
        connection.connect("socket")
        message = framed(message)
        while message:
            message = message[connection.send(message) :]
        answer = b""
        while chunk := connection.recv(1 << 20):
            answer += chunk
    except OSError:
        answer = b""
    head, _, rest = answer.partition(b"\n")
    if not head:
        return nobody_there(name)
    code, out, error, wait = map(int, head.split())
    write(1, rest[:out])
    write(2, rest[out : out + error])
    if wait:
        wait_for_ever()
    return code


def framed(part):
    return b"%d:" % len(part) + part


def script(name, words):
    """What the job shall run where that is no command line: "F" and the content of a script file, "I"
    and what came on standard input, "E" and why there is no such file; else nothing."""
    at = 0
    if name == "qsub":
        while at < len(words) and words[at].startswith("-") and words[at] not in ("-", "--"):
            at += 2 if len(words[at]) == 2 and words[at][1] in QSUB_VALUES else 1
        if at < len(words) and words[at] == "--":
            return b""
        if at < len(words) and words[at] != "-":
            try:
                with open(words[at], "rb") as file:
                    return b"F" + file.read()
            except OSError as error:
                return b"E" + str(error.strerror).encode()
        return b"I" + read_input()
    if name == "bsub":
        while at < len(words) and words[at].startswith("-"):
            at += 1 if words[at] in BSUB_FLAGS else 2
        return b"" if at < len(words) else b"I" + read_input()
    return b""


def read_input():
    with open(0, "rb", closefd=False) as file:
        return file.read()


def write(descriptor, data):
    while data:
        data = data[os.write(descriptor, data) :]


def wait_for_ever():
    from time import sleep

    while True:
        sleep(3600)


def nobody_there(name):
    """The server's process is gone, which looks like a batch system whose daemon is dead."""
    if FLAVOUR == "lsf":
        write(2, b"batch system daemon not responding ... still trying\n")
        wait_for_ever()
    write(2, f"Connection refused\n{name}: cannot connect to server {SERVER} (errno=15010)\n".encode())
    return {"qstat": 255, "qrun": 2}.get(name, 162)


if __name__ == "__main__":
    sys.exit(main())
