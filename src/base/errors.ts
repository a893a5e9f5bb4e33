/** Error codes of the interface. The routes map each code to a message and an HTTP status. */
export type SluiceErrorCode =
  | "no_selector" // no content_id, infohash, url or magnet given
  | "bad_selector" // a malformed selector: not 40 hex digits, not a magnet …
  | "bad_parameter" // any other malformed parameter
  | "bad_transport_file" // malformed transport file
  | "unsupported_content" // a valid transport file without a playable file
  | "url_unreachable" // fetching a URL failed
  | "url_refused" // a URL that may not be fetched: scheme, address, size
  | "content_id_unknown" // content without a content id, or a key that cannot be resolved
  | "no_peers" // no peer found before the timeout
  | "metadata_timeout" // peers found, but no metadata before the timeout
  | "start_timeout" // metadata present, but no data before the timeout
  | "unsupported_codec" // the requested container cannot carry this codec; the message names it
  | "unsupported_container" // not a supported media file
  | "broken_media" // malformed media
  | "no_such_file" // file index not in the transport file
  | "no_such_segment" // segment number not in the manifest
  | "unknown_session" // session id unknown, or the session has ended
  | "session_stopped" // the session ended during this request
  | "too_many" // a limit on sessions, transfers, or connections is reached
  | "store_unavailable" // the server of the database does not answer or refuses changes
  | "disk_full" // no space left on the cache disk
  | "port_busy" // another program listens on the port
  | "bad_configuration" // malformed flag, environment variable or config file
  | "cancelled" // the client disconnected
  | "missing_method" // control request without a method
  | "unknown_method" // control method does not exist
  | "missing_parameter" // required parameter missing
  | "token_required" // private method called without a token
  | "wrong_token" // token invalid or expired
  | "access_denied" // client address or page origin not allowed
  | "auth_error" // sign-in failed
  | "unknown_protocol" // link of an unsupported kind
  | "unknown_item" // item id not in the playlist
  | "unknown_external_playlist" // external playlist id does not exist
  | "unknown_task" // task id does not exist
  | "unknown_player" // player id not listed by get_available_players
  | "player_failed" // a player or device refuses, does not answer, or cannot play this content
  | "unknown_broadcast" // no broadcast has this name
  | "not_a_playlist" // the data is not a playlist
  | "bad_image" // image of an unsupported type, or too large
  | "too_large"; // upload larger than its limit

/** A request that cannot be fulfilled. `code` identifies the reason; the message says what was expected and what was received. */
export class SluiceError extends Error {
  override readonly name = "SluiceError";
  readonly code: SluiceErrorCode;

  constructor(code: SluiceErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

/** Malformed input from outside. It fails that peer or that request, and nothing else. */
export class DecodeError extends Error {
  override readonly name = "DecodeError";
  /** The expected format, such as `bencode` or `TS packet`. */
  readonly format: string;
  /** Position of the fault in the input, in bytes (in characters for text). */
  readonly offset: number;

  constructor(format: string, offset: number, message: string) {
    super(`${format}: ${message} (at ${offset})`);
    this.format = format;
    this.offset = offset;
  }
}

/** Returns the message of any thrown value. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
