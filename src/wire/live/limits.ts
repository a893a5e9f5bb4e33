/** The limits of the live formats. All are part of the protocol: every implementation refuses the same messages, so that no peer
 * is disconnected for forwarding a message that it had to accept. Sizes are in bytes. */

/** Transport file: far more than a description and a hundred trackers need. */
export const MAX_LIVE_FILE_BYTES = 64 * 1024;
/** Duration of a piece, in ms. Shorter pieces cost more than 5 % for headers; longer ones delay every hop. */
export const MIN_PIECE_MS = 50;
export const MAX_PIECE_MS = 1000;
/** Piece: 250 ms at 64 Mbit/s. */
export const MAX_LIVE_PIECE_BYTES = 2 * 1024 * 1024;
/** Rate that a source may declare, in bytes per second: a piece of maximum size every {@link MIN_PIECE_MS}, rounded up. */
export const MAX_BYTES_PER_SECOND = 64 * 1024 * 1024;
/** Time for which relays may be asked to keep pieces, in seconds: a day. */
export const MAX_WINDOW_SECONDS = 86_400;
/** Duration of an HLS segment, in ms. At least 1 s, so that numbers that start at `ts / segment` fit 32 bits until 2106. */
export const MIN_SEGMENT_MS = 1000;
export const MAX_SEGMENT_MS = 10_000;
/** Span of one piece, in ms; a source without input still makes one piece per second. */
export const MAX_PIECE_SPAN_MS = 5000;
/** Relays in a transport file or a STAT. */
export const MAX_RELAYS = 32;
/** Manifests in a transport file. */
export const MAX_MANIFESTS = 8;
/** Qualities of one broadcast: with more, each has too few viewers to help each other, and the description outgrows a STAT. */
export const MAX_VARIANTS = 6;
/** Payload of a CHUNK message. A larger chunk is sent in several messages. */
export const FRAGMENT_BYTES = 16 * 1024;
/** Incomplete chunks per connection: one for each priority. */
export const MAX_OPEN_CHUNKS = 4;
/** Candidates in a SUBNO or BYE, and holders in a NAK. */
export const MAX_CANDIDATES = 8;
/** Chunks in one REQ, CANCEL or NAK: one second of sixteen stripes. */
export const MAX_REQUESTED_CHUNKS = 128;
/** Headers requested by one HREQ. */
export const MAX_REQUESTED_HEADERS = 256;
/** Ancestors of one stripe in PATHS; a deeper peer lists the nearest ones. */
export const MAX_ANCESTORS = 15;
/** Pieces of backlog that a SUB may request, and that its bitmaps cover. */
export const MAX_BACKFILL_PIECES = 32;
/** Dictionary of a STAT. */
export const MAX_STAT_BYTES = 1024;
