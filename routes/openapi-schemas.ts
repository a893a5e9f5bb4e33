import type { JsonSchema } from "./openapi-parts.ts";

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

/** What several operations answer with (interface: Resources and their fields, Errors). */
export const OPENAPI_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  ControlFailure: {
    type: "object",
    required: ["result", "error"],
    properties: {
      result: { type: "null" },
      error: {
        oneOf: [
          { type: "string", description: "Where api_version is absent or 1" },
          {
            type: "object",
            description: "Where api_version is 2 or 3",
            required: ["message", "code"],
            properties: { message: text, code: whole },
          },
        ],
      },
    },
  },
  PlaybackFailure: {
    type: "object",
    required: ["response", "error"],
    properties: { response: { type: "null" }, error: text },
  },
  PlaybackSession: {
    type: "object",
    properties: {
      playback_url: url,
      stat_url: url,
      command_url: url,
      event_url: { ...url, description: "With use_api_events=1" },
      ...identity,
    },
  },
  SessionInfo: {
    type: "object",
    properties: {
      status: { type: "string", enum: ["prefuf", "prebuf", "dl", "err"] },
      progress: { type: "integer", description: "Of what is needed before the first byte, 0 to 100" },
      error_message: { type: "string", description: "Where the status is err" },
      peers: whole,
      speed_down: { type: "integer", description: "Kbytes/s" },
      speed_up: { type: "integer", description: "Kbytes/s" },
      downloaded: { type: "integer", description: "Bytes" },
      uploaded: { type: "integer", description: "Bytes" },
      total_progress: { type: "integer", description: "Of the file, 0 to 100" },
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
        description: "Why the player waits, with the numbers behind the sentence; null where it does not",
        properties: { reason: text, text },
        additionalProperties: { type: "number" },
      },
      livepos: {
        type: "object",
        description: "Of live content only. Positions are UNIX seconds, as text",
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
