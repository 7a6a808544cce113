"""Why Redis did not do what it was asked, and what a person can do about it.

No text of Redis or of redis-py is repeated: it may have a part of the password.
"""

import socket
import ssl
from typing import NamedTuple


class Failure(NamedTuple):
    reason: str  # in the metric
    says: str  # after the name of the host
    lasting: bool = False  # asking again is useless until a person has changed something


PASSWORD = Failure("refused", "refuses the user or the password in VIT_STORE", lasting=True)
CLUSTER = Failure(
    "refused", "is a node of a Redis Cluster, which is not supported: VIT_STORE takes one Redis", lasting=True
)
# By the first word of the answer, as Redis defines it (src/server.c, createSharedObjects).
REFUSALS = {
    "NOPERM": Failure(
        "refused", "forbids this user to keep maps: allow `+get +set +select ~vit-serve:*`", lasting=True
    ),
    "NOAUTH": PASSWORD,
    "WRONGPASS": PASSWORD,
    "MOVED": CLUSTER,
    "ASK": CLUSTER,
    "CLUSTERDOWN": CLUSTER,
    "READONLY": Failure("read-only", "is a read-only replica: VIT_STORE takes the primary"),
    "OOM": Failure("full", "is full: give it more memory, or a maxmemory-policy that evicts"),
    "MISCONF": Failure("refused", "takes nothing because it cannot save to its disk: its own log says why"),
    "LOADING": Failure("no-connection", "is still loading its data"),
}
# By words of an answer that begins with ERR.
ERRORS = {
    "DB index": Failure("refused", "has no database of the number in VIT_STORE", lasting=True),
    "cluster mode": CLUSTER,  # to SELECT
    "max number of clients": Failure(
        "no-connection", "takes no more connections: raise its maxclients, or lower VIT_STORE_CONNECTIONS"
    ),
}
# By the error of the system below that of redis-py; the first that fits.
CAUSES: tuple[tuple[type[BaseException], Failure], ...] = (
    (socket.gaierror, Failure("no-connection", "has a name that cannot be found")),
    (ssl.SSLCertVerificationError, Failure("no-connection", "has a certificate that is not trusted: see ssl_ca_certs")),
    (ssl.SSLError, Failure("no-connection", "does not speak TLS at this port, but VIT_STORE says rediss")),
    (FileNotFoundError, Failure("no-connection", "cannot be asked: a file that VIT_STORE names does not exist")),
    (ConnectionRefusedError, Failure("no-connection", "refuses connections: it does not run, or at another port")),
)
CLOSED = Failure("no-connection", "closes the connection; if it wants TLS, VIT_STORE begins with rediss")
SILENT = Failure("timeout", "does not answer in time")
UNRESOLVED = Failure("no-connection", "has a name for which no name server answers")
REFUSED = Failure("refused", "refuses the command")
