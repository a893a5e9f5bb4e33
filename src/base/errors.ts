/** Every reason for which something a user asked for cannot be. The routes map each to a message and a status. */
export type SluiceErrorCode =
  | "no_selector" // none of content_id, infohash, url, magnet was given
  | "bad_selector" // a selector that cannot be read: not 40 hex digits, not a magnet …
  | "bad_parameter" // any other malformed parameter
  | "bad_transport_file" // not a torrent, or a hostile one
  | "unsupported_content" // a valid transport file of a kind we do not play (no playable file)
  | "url_unreachable" // a URL that could not be fetched
  | "url_refused" // a URL we will not fetch: scheme, address, size
  | "content_id_unknown" // nobody we can ask knows this content id
  | "no_peers" // the swarm had no peer within the settable time
  | "metadata_timeout" // peers, but no metadata within the settable time
  | "start_timeout" // metadata, but no first data within the settable time
  | "unsupported_codec" // a codec the asked container cannot carry; the message names it
  | "unsupported_container" // not a media file we can read
  | "broken_media" // media that contradicts itself
  | "no_such_file" // a file index outside the transport file
  | "no_such_segment" // a segment number outside the manifest
  | "unknown_session" // a session that never was, or has ended
  | "session_stopped" // the session ended while this request waited
  | "too_many" // a limit on sessions, transfers, or connections is reached
  | "disk_full" // the cache disk cannot take more
  | "port_busy" // another program listens there
  | "bad_configuration" // a flag, variable or config file that cannot be read
  | "cancelled" // the asker went away
  | "missing_method" // a control request that names no method
  | "unknown_method" // a control method that does not exist
  | "missing_parameter" // a parameter without which nothing can be done
  | "token_required" // a private method without a token
  | "wrong_token" // a private method with a token that is none, or no more
  | "access_denied" // asked from an address or a page that may not
  | "auth_error" // whatever is wrong about a sign-in
  | "unknown_protocol" // something to analyse that is no link of a kind we know
  | "unknown_item" // an item id that is not in the playlist
  | "item_locked" // a change of many items that finds only locked ones
  | "unknown_external_playlist" // an external playlist id that does not exist
  | "unknown_task" // a task id that does not exist
  | "unknown_player" // a player id that get_available_players does not list
  | "unknown_broadcast" // a name under which nothing is broadcast here
  | "not_a_playlist" // expected a playlist, something else came
  | "bad_image" // not a picture of a kind that is kept, or too large
  | "too_large"; // an upload above its limit

/** Asked for, and cannot be: carries a `code` from a closed union; the message says what was expected and what came. */
export class SluiceError extends Error {
  override readonly name = "SluiceError";
  readonly code: SluiceErrorCode;

  constructor(code: SluiceErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

/** Bytes or text from outside that break their format: costs that peer or that request, nothing else. */
export class DecodeError extends Error {
  override readonly name = "DecodeError";
  /** The format that was expected, such as `bencode` or `TS packet`. */
  readonly format: string;
  /** Where in the input, in bytes (or characters for text). */
  readonly offset: number;

  constructor(format: string, offset: number, message: string) {
    super(`${format}: ${message} (at ${offset})`);
    this.format = format;
    this.offset = offset;
  }
}

/** The message of anything that was thrown. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
