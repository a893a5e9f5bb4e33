/** Limits of uTP, with their reasons. Sizes in bytes, times in milliseconds. */

/** Fits through almost every path: 576 bytes of IP (RFC 791) minus the longest IP and UDP headers. */
export const SMALL_PACKET_BYTES = 528;
/** A conservative size for tunnels, PPPoE and VPNs on a path of 1,500 bytes: 1,400 bytes of IP minus the same headers. */
export const LARGE_PACKET_BYTES = 1_352;
/** Probes of the large size that may be lost before the small size is kept: single packets are lost by chance, too. */
export const MAX_SIZE_PROBES = 3;

/** Buffered bytes of one connection, because of a gap or because reading is paused. A lost packet is a gap for one round trip,
 * for two if it is lost again, so that 2 MiB are 80 Mbit/s at 100 ms. */
export const RECEIVE_WINDOW_BYTES = 2 * 1024 * 1024;
/** The same for all connections together, so that many hostile peers cannot multiply it. */
export const MAX_RECEIVED_BYTES = 32 * 1024 * 1024;
/** Memory cost of a buffered packet besides its bytes. */
export const WAITING_PACKET_BYTES = 128;
/** Buffered packets behind a gap: as many as a selective ack can name (BEP 29: 252 bytes). */
export const MAX_EARLY_PACKETS = 2_000;
/** Packets in flight that every peer can buffer behind a gap: libtorrent drops those from the 512th on. */
export const SAFE_FLIGHT_PACKETS = 500;
/** Packets in flight to peers that are known to buffer 512 and 1,024; libtorrent buffers the former, libutp the latter. */
export const FLIGHT_LEVELS: readonly { readonly buffers: number; readonly packets: number }[] = [
  { buffers: 512, packets: 1_010 },
  { buffers: 1_024, packets: 1_950 },
];
/** Packets sent beyond the current level to find out whether the peer buffers more. With fewer, the first of them would have to
 * be lost for the gap to be long enough. */
export const FLIGHT_PROBES = 64;
/** The level is kept if this many more of them are lost than arrive. */
export const MAX_LOST_FLIGHT_PROBES = 24;
/** Maximum congestion window; with small packets the limit of packets in flight is lower. */
export const MAX_WINDOW_BYTES = 2 * 1024 * 1024;

/** Connections in total: more than all swarms may have (`--max-connections`), because some are closing. */
export const MAX_UTP_CONNECTIONS = 1_000;
/** Connections of one IP address: two engines need one for each swarm they share. */
export const MAX_UTP_CONNECTIONS_PER_HOST = 40;
/** SYN packets answered per second: an answer costs 20 bytes and a hash, and its destination may be forged. */
export const MAX_ANSWERS_PER_SECOND = 2_000;
/** Resets sent per second in answer to packets of unknown connections. */
export const MAX_RESETS_PER_SECOND = 50;

/** Initial retransmission timeout, and its minimum (BEP 29: 1 s and 500 ms). */
export const FIRST_TIMEOUT_MS = 1_000;
export const MIN_TIMEOUT_MS = 500;
/** The timeout doubles up to this. */
export const MAX_TIMEOUT_MS = 8_000;
/** A peer that acknowledges nothing for this time is unreachable. */
export const DEAD_MS = 30_000;
/** How long the last packets of a closed connection are retransmitted. */
export const LINGER_MS = 3_000;
/** An acknowledgement is delayed by this time, in case it can be sent with other packets or data. */
export const ACK_DELAY_MS = 10;
/** Many NATs drop a UDP mapping after 30 s of silence (RFC 4787 4.3 requires more). */
export const KEEP_ALIVE_MS = 25_000;
/** Interval of window probes to a peer with a closed window, because its window update may have been lost. */
export const WINDOW_PROBE_MS = 1_000;
/** If a timer fires later than this, the process was blocked: packets waiting in the socket are read before timeouts. */
export const LATE_WAKE_MS = 30;
