import type { JsonSchema } from "./openapi-examples.ts";

const text = { type: "string" };
const whole = { type: "integer" };
const url = { type: "string", format: "uri" };

const identity = {
  infohash: text,
  playback_session_id: text,
  is_live: { type: "integer", enum: [0, 1] },
  is_encrypted: { type: "integer", enum: [0, 1] },
  client_session_id: { type: "integer", description: "-1 when no client session applies" },
};

/** The schemas that several responses share (interface: Resources and their fields, Errors). */
export const OPENAPI_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  ControlError: {
    type: "object",
    description: "docs/errors.md lists the codes. With api_version=1, the error is the message alone",
    required: ["message", "code"],
    properties: { message: text, code: whole },
  },
  PlaybackSession: {
    type: "object",
    properties: {
      playback_url: url,
      stat_url: url,
      command_url: url,
      event_url: { ...url, description: "Present with use_api_events=1 or use_stop_notifications=1" },
      is_direct: { type: "boolean", description: "Present and true for content of a web server" },
      ...identity,
    },
  },
  SessionInfo: {
    type: "object",
    properties: {
      status: { type: "string", enum: ["prefuf", "prebuf", "dl", "err"] },
      progress: { type: "integer", description: "Progress of the initial buffering, 0 to 100" },
      error_message: { type: "string", description: "Present if the status is err" },
      peers: whole,
      speed_down: { type: "integer", description: "Kbytes/s" },
      speed_up: { type: "integer", description: "Kbytes/s" },
      downloaded: { type: "integer", description: "Bytes" },
      uploaded: { type: "integer", description: "Bytes" },
      total_progress: { type: "integer", description: "Share of the file that is downloaded, 0 to 100" },
      selected_file_index: { type: "integer", description: "-1 when none" },
      selected_stream_index: whole,
      network_monitor_status: whole,
      network_monitor_started: { type: "boolean" },
      debug_level: whole,
      stream_status: whole,
      manifest_access_mode: whole,
      ...identity,
      disk_cache_stats: {
        type: "object",
        properties: { avail: whole, disk_cache_limit: whole, inactive_inuse: whole, active_inuse: whole },
      },
      buffering: {
        type: ["object", "null"],
        description: "Why the player waits, as a sentence and with its numbers; null if it does not wait",
        properties: { reason: text, text },
        additionalProperties: { type: "number" },
      },
      channel: {
        type: "object",
        description:
          "Present for a live channel of several sources. The source counts from 1; 0: none delivers",
        properties: {
          source: whole,
          source_name: { type: ["string", "null"] },
          sources: whole,
          shows_pattern: { type: "boolean", description: "True while all sources fail" },
          switches: whole,
          last_switch_at: { type: ["integer", "null"], description: "UNIX seconds" },
          last_switch_reason: { type: ["string", "null"] },
        },
      },
      livepos: {
        type: "object",
        description: "Present for live content only. Positions are UNIX seconds, as text",
        properties: {
          live_first: text,
          live_last: text,
          first_ts: text,
          last_ts: text,
          pos: text,
          last: text,
          is_live: { type: "string", enum: ["0", "1"] },
          buffer_pieces: text,
        },
      },
    },
  },
};
