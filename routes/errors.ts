import { SluiceError, type SluiceErrorCode } from "../src/base/errors.ts";

/** How one code is told to players. */
export interface ErrorRow {
  /** For requests that do not ask for JSON. */
  readonly status: number;
  /** What clients look for; the particulars follow it. */
  readonly text: string;
}

const LOAD = "failed to load content";
const START = "failed to start";

/**
 * Every error as players see it; `docs/errors.md` shows the same table. A start that got stuck answers 500, as
 * deployed clients expect, for they try again then.
 */
export const ERRORS: Readonly<Record<SluiceErrorCode, ErrorRow>> = {
  no_selector: { status: 400, text: "missing content id" },
  bad_selector: { status: 400, text: LOAD },
  bad_parameter: { status: 400, text: "bad parameter" },
  bad_transport_file: { status: 415, text: LOAD },
  unsupported_content: { status: 415, text: LOAD },
  url_unreachable: { status: 502, text: LOAD },
  url_refused: { status: 403, text: LOAD },
  content_id_unknown: { status: 404, text: LOAD },
  no_peers: { status: 500, text: "download not found" },
  metadata_timeout: { status: 500, text: "download not found" },
  start_timeout: { status: 500, text: "start timeout" },
  unsupported_codec: { status: 415, text: START },
  unsupported_container: { status: 415, text: START },
  broken_media: { status: 415, text: START },
  no_such_file: { status: 404, text: START },
  no_such_segment: { status: 404, text: "no such segment" },
  unknown_session: { status: 404, text: "unknown playback session id" },
  session_stopped: { status: 410, text: "session stopped" },
  too_many: { status: 503, text: "too many" },
  disk_full: { status: 507, text: "disk full" },
  port_busy: { status: 500, text: "port busy" },
  bad_configuration: { status: 500, text: "bad configuration" },
  cancelled: { status: 499, text: "cancelled" },
};

/** The status and the text of what was thrown, or undefined where it is no error a player may cause. */
export function explain(thrown: unknown): ErrorRow | undefined {
  if (!(thrown instanceof SluiceError)) return undefined;
  const { status, text } = ERRORS[thrown.code];
  // Clients compare these two as a whole.
  if (thrown.code === "unknown_session") return { status, text };
  if (thrown.message === "got newer download") return { status, text: thrown.message };
  return { status, text: `${text}: ${thrown.message}` };
}
