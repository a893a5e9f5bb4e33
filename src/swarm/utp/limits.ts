/** Every limit of uTP, with its reason. Sizes in bytes, times in milliseconds. */

/** A datagram that fits through practically every path: 576 bytes of IP (RFC 791) less the longest IP and UDP headers. */
export const SMALL_PACKET_BYTES = 528;
/** What tunnels, PPPoE and VPNs leave of 1,500 bytes, with care: 1,400 bytes of IP less the same headers. */
export const LARGE_PACKET_BYTES = 1_352;
/** Probes of the large size that may be lost before the small one stays: single packets are lost by chance, too. */
export const MAX_SIZE_PROBES = 3;

/** Bytes of one connection that wait because a gap is before them, or because nobody reads: a megabyte is 80 Mbit/s at a
 * round trip of 100 ms. */
export const RECEIVE_WINDOW_BYTES = 1024 * 1024;
/** The same for all connections together: hostile peers shall not multiply the above. */
export const MAX_RECEIVED_BYTES = 32 * 1024 * 1024;
/** What a packet costs that waits, beside its bytes: many tiny ones are not free. */
export const WAITING_PACKET_BYTES = 128;
/** Packets that may wait for one that is missing. */
export const MAX_EARLY_PACKETS = 1_000;
/** Packets on their way: common receivers keep 512 after a gap. */
export const MAX_FLIGHT_PACKETS = 500;
/** What the window of the path may grow to; with small packets the number above is less. */
export const MAX_WINDOW_BYTES = 1024 * 1024;

/** Connections in all: more than all swarms together may have (`--max-connections`), as some are being closed. */
export const MAX_UTP_CONNECTIONS = 1_000;
/** Connections of one address (and port): two engines need one for each swarm they share. */
export const MAX_UTP_CONNECTIONS_PER_HOST = 40;
/** Connection attempts answered in a second: an answer costs 20 bytes and a hash, and goes to whom the datagram names. */
export const MAX_ANSWERS_PER_SECOND = 2_000;
/** Packets of connections that are no more which are told so, in a second. */
export const MAX_RESETS_PER_SECOND = 50;

/** The first wait for an answer to an attempt, and the least wait for an acknowledgement (BEP 29: 1 s and 500 ms). */
export const FIRST_TIMEOUT_MS = 1_000;
export const MIN_TIMEOUT_MS = 500;
/** Waits double up to this. */
export const MAX_TIMEOUT_MS = 8_000;
/** A peer that acknowledges nothing for so long has gone. */
export const DEAD_MS = 30_000;
/** How long the last packets of a closed connection are sent again. */
export const LINGER_MS = 3_000;
/** An acknowledgement waits so long for company: other packets, or bytes of ours. */
export const ACK_DELAY_MS = 10;
/** Routers forget a UDP path after 30 s of silence (RFC 4787 4.3 asks for more, many do not keep to it). */
export const KEEP_ALIVE_MS = 25_000;
/** How often who cannot take anything is asked whether that is still so: its word may have been lost. */
export const WINDOW_PROBE_MS = 1_000;
/** Where timers ring later than this the machine was held up, and packets wait unread that they must not overtake. */
export const HELD_UP_MS = 30;
