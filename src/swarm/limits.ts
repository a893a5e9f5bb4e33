/** Every limit of the swarm, with its reason. Sizes in bytes, times in milliseconds. */

/** A request is 16 KiB: larger ones are refused by common seeders (BEP 3, practice). */
export const BLOCK_BYTES = 16 * 1024;
/** The largest block we serve or accept; some old clients ask for 32 KiB, nobody for more than 128 KiB. */
export const MAX_BLOCK_BYTES = 128 * 1024;
/** Extension messages (metadata, PEX) stay far below; libtorrent and anacrolix cap at 1 MiB. */
export const MAX_EXTENSION_BYTES = 1024 * 1024;
/** BEP 9 metadata: anacrolix 16 MiB, libtorrent 30 MiB. */
export const MAX_METADATA_BYTES = 16 * 1024 * 1024;
/** Requests a peer may have waiting with us; libtorrent answers up to 2,000, we announce this as `reqq`. */
export const MAX_UPLOAD_QUEUE = 500;
/** Requests we keep waiting with one peer at most (8 MiB in flight). */
export const MAX_REQUEST_QUEUE = 512;
/** Requests to a peer whose speed is not known yet. */
export const MIN_REQUEST_QUEUE = 4;
/** A handshake must be complete by then (libtorrent: 10 s). */
export const HANDSHAKE_TIMEOUT_MS = 10_000;
/** A connection that cannot be opened by then is given up. */
export const CONNECT_TIMEOUT_MS = 7_000;
/** Keep-alive interval and how long silence is borne (BEP 3: 2 minutes). */
export const KEEP_ALIVE_MS = 90_000;
export const IDLE_TIMEOUT_MS = 150_000;
/** Candidates known for a swarm; further ones push out the least promising. */
export const MAX_CANDIDATES = 3_000;
/** Connections of one swarm. */
export const MAX_PEERS = 80;
/** Connections being opened at once in one swarm: home routers drop bursts. */
export const MAX_HALF_OPEN = 24;
/** Connections from one IP address (several may hide behind one NAT); loopback is exempt for tests at home. */
export const MAX_PEERS_PER_ADDRESS = 2;
/** PEX (BEP 11): peers in a message, and how often one may come. */
export const MAX_PEX_PEERS = 50;
export const PEX_INTERVAL_MS = 60_000;
/** Choker rounds and the turn of the optimistic slot (BEP 3: 10 s and 30 s). */
export const CHOKE_INTERVAL_MS = 10_000;
export const OPTIMISTIC_INTERVAL_MS = 30_000;
/** Blocks a peer may send that we did not ask for (or cancelled) before it is cut off. */
export const MAX_UNREQUESTED_BLOCKS = 64;
/** Unverified bytes of a swarm: pieces that were started. Enough for eight fast peers with their queues full. */
export const MAX_PARTIAL_BYTES = 32 * 1024 * 1024;
/** So many pieces may be on their way however large they are: one to finish, others for peers that lack it. */
export const MIN_PARTIAL_PIECES = 3;
