import { SluiceError, type SluiceErrorCode } from "../../src/base/errors.ts";

/** How an error is reported to clients. */
export interface ErrorRow {
  /** The HTTP status of responses that are not JSON. */
  readonly status: number;
  /** The text that clients search for; details follow it. */
  readonly text: string;
  /** The `code` of a control method's error. Its meaning never changes. */
  readonly code: number;
}

const LOAD = "failed to load content";
const START = "failed to start";

/**
 * Every error as clients see it; `docs/errors.md` shows the same table. A start that times out answers 500, because
 * deployed clients retry on that status. An unknown session answers 403: they start another one on that status only.
 */
export const ERRORS: Readonly<Record<SluiceErrorCode, ErrorRow>> = {
  no_selector: { status: 400, text: "missing content id", code: 300 },
  bad_selector: { status: 400, text: LOAD, code: 301 },
  bad_parameter: { status: 400, text: "bad parameter", code: 103 },
  bad_transport_file: { status: 415, text: LOAD, code: 302 },
  unsupported_content: { status: 415, text: LOAD, code: 303 },
  url_unreachable: { status: 502, text: LOAD, code: 304 },
  url_refused: { status: 403, text: LOAD, code: 305 },
  content_id_unknown: { status: 404, text: LOAD, code: 306 },
  no_peers: { status: 500, text: "download not found", code: 307 },
  metadata_timeout: { status: 500, text: "download not found", code: 308 },
  start_timeout: { status: 500, text: "start timeout", code: 309 },
  unsupported_codec: { status: 415, text: START, code: 310 },
  unsupported_container: { status: 415, text: START, code: 311 },
  broken_media: { status: 415, text: START, code: 312 },
  no_such_file: { status: 404, text: START, code: 313 },
  no_such_segment: { status: 404, text: "no such segment", code: 314 },
  unknown_session: { status: 403, text: "unknown playback session id", code: 203 },
  session_stopped: { status: 410, text: "session stopped", code: 204 },
  too_many: { status: 503, text: "too many", code: 400 },
  store_unavailable: { status: 503, text: "store unavailable", code: 407 },
  disk_full: { status: 507, text: "disk full", code: 401 },
  port_busy: { status: 500, text: "port busy", code: 402 },
  bad_configuration: { status: 500, text: "bad configuration", code: 403 },
  cancelled: { status: 499, text: "cancelled", code: 404 },
  missing_method: { status: 400, text: "missing method", code: 100 },
  unknown_method: { status: 404, text: "unknown method", code: 101 },
  missing_parameter: { status: 400, text: "missing parameter", code: 102 },
  token_required: { status: 401, text: "access token required", code: 104 },
  wrong_token: { status: 401, text: "wrong access token", code: 105 },
  access_denied: { status: 403, text: "access denied", code: 0 },
  auth_error: { status: 401, text: "auth_error", code: 0 },
  unknown_protocol: { status: 400, text: "unknown protocol", code: 0 },
  unknown_item: { status: 404, text: "unknown item", code: 200 },
  unknown_external_playlist: { status: 404, text: "unknown external playlist", code: 201 },
  unknown_task: { status: 404, text: "unknown task", code: 205 },
  unknown_player: { status: 404, text: "unknown player", code: 202 },
  player_failed: { status: 502, text: "player failed", code: 406 },
  unknown_broadcast: { status: 404, text: "unknown broadcast", code: 207 },
  not_a_playlist: { status: 415, text: "not a playlist", code: 320 },
  bad_image: { status: 415, text: "bad image", code: 321 },
  too_large: { status: 413, text: "too large", code: 322 },
};

/** Texts that clients compare as a whole, so no details follow them. */
const EXACT_TEXTS: ReadonlySet<SluiceErrorCode> = new Set([
  "unknown_session",
  "access_denied",
  "auth_error",
  "unknown_protocol",
]);

/** Returns the status, text and code of a `SluiceError`; undefined for anything else, which is a bug. */
export function describeError(thrown: unknown): ErrorRow | undefined {
  if (!(thrown instanceof SluiceError)) return undefined;
  const { status, text, code } = ERRORS[thrown.code];
  if (EXACT_TEXTS.has(thrown.code)) return { status, text, code };
  if (thrown.message === "got newer download") return { status, text: thrown.message, code };
  return { status, text: `${text}: ${thrown.message}`, code };
}
