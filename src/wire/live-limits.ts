/** Every limit of the live formats, with its reason. All are part of the protocol: what one engine refuses, all refuse,
 * so that nobody is cut off for handing on what it had to take for good. Sizes in bytes. */

/** A transport file: a logo, a description and a hundred trackers fit many times over. */
export const MAX_LIVE_FILE_BYTES = 64 * 1024;
/** How long the source may gather a piece, in ms: below, headers cost more than 5 %; above, every hop waits. */
export const MIN_PIECE_MS = 50;
export const MAX_PIECE_MS = 1000;
/** A piece: 250 ms of 64 Mbit/s. */
export const MAX_LIVE_PIECE_BYTES = 2 * 1024 * 1024;
/** What a source may declare as its rate, in bytes a second: pieces of full size every {@link MIN_PIECE_MS}. */
export const MAX_BYTES_PER_SECOND = 64 * 1024 * 1024;
/** How much relays may be asked to keep, in seconds: a day. */
export const MAX_WINDOW_SECONDS = 86_400;
/** Segments of HLS, in ms. Not below 1 s, so that a number that begins at `ts / segment` fits 32 bits until 2106. */
export const MIN_SEGMENT_MS = 1000;
export const MAX_SEGMENT_MS = 10_000;
/** What one piece may say to span, in ms: a source that hears nothing still makes one a second. */
export const MAX_PIECE_SPAN_MS = 5000;
/** Relays that a transport file or a STAT names. */
export const MAX_RELAYS = 32;
/** Manifests that a transport file names. */
export const MAX_MANIFESTS = 8;
/** The payload of a CHUNK message. A chunk that is larger travels in several, each with the same prefix. */
export const FRAGMENT_BYTES = 16 * 1024;
/** Chunks of several fragments that one connection may have begun: one of each urgency. */
export const MAX_OPEN_CHUNKS = 4;
/** Addresses that a refusal or a farewell brings. */
export const MAX_CANDIDATES_TOLD = 8;
/** Chunks in one REQ, CANCEL or NAK: a second of sixteen stripes. */
export const MAX_CHUNKS_ASKED = 128;
/** Headers that one HREQ asks for. */
export const MAX_HEADERS_ASKED = 256;
/** Ancestors of one stripe that PATHS names; who is deeper names the nearest. */
export const MAX_ANCESTORS = 15;
/** Pieces of backlog that a SUB may ask for, and that its bitmaps speak of. */
export const MAX_BACKFILL_PIECES = 32;
/** The dictionary of a STAT. */
export const MAX_STAT_BYTES = 1024;
