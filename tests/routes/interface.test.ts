import assert from "node:assert/strict";
import { test } from "node:test";
import { base64, filmTorrent } from "../engine/fake-engine.ts";
import { fakeApp } from "./client.ts";

const film = filmTorrent();

/** Every parameter of the playback endpoints, as the interface lists them, with values that deployed clients send. */
const PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  format: ["json"],
  pid: ["a b/c", "x".repeat(2000)],
  sid: ["tv"],
  playlist_output_format_vod: ["auto", "hls"],
  playlist_output_format_live: ["http", "original"],
  playlist_selected_indexes: ["0,1"],
  next_file_indexes: ["1,2"],
  start_from: ["10"],
  _idx: ["0", "2", "-1", ""],
  quality: ["720"],
  stream_id: ["-1"],
  provider: ["p"],
  direct_url: ["http://x/"],
  mode: ["download"],
  debug_options: ["{}"],
  cas: ["1"],
  preferred_audio_language: ["eng", "ru", "no such language"],
  product_key: ["k"],
  secondary_product_key: ["k"],
  use_api_stop: ["0", "1"],
  use_api_events: ["0", "1"],
  use_stop_notifications: ["1"],
  transcode_audio: ["1"],
  transcode_mp3: ["1"],
  transcode_ac3: ["0"],
  disable_p2p: ["0"],
  hlc: ["1"],
  allow_multiple_threads_reading: ["1"],
  stop_prev_read_thread: ["1"],
  proxy_vast_response: ["1"],
  force_session_restart: ["1"],
  gdpr_consent: ["1"],
  force_ads: ["0"],
  is_restarted_session: ["0"],
  collect_start_stats: ["1"],
  // An extension that deployed clients send.
  client_session_id: ["12"],
  manifest_p2p_wait_timeout: ["10"],
  use_timeshift: ["1"],
  auto_start_stream: ["1"],
  callback: [""],
  ".mp4": [""],
};

for (const path of ["/ace/getstream", "/ace/manifest.m3u8"]) {
  test(`${path}: accepts every parameter of the interface`, async () => {
    const app = fakeApp();
    await app.call("/ace/getstream", {
      method: "POST",
      body: JSON.stringify({ transport_file_data: base64(film.bytes) }),
    });
    for (const [name, values] of Object.entries(PARAMETERS)) {
      for (const value of values) {
        const query = `infohash=${film.infohash}&${name}=${encodeURIComponent(value)}`;
        const { response, error } = await app.json(
          `${path}?${query}${name === "format" ? "" : "&format=json"}`,
        );
        assert.equal(error, null, `${name}=${value}`);
        assert.equal(response.infohash, film.infohash);
        await app.json(`${response.command_url}?method=stop`);
      }
    }
  });
}

/** The responses of each session URL, for a running and a stopped session. */
const SESSION_URLS: readonly (readonly [url: string, query: string, playing: number, over: number])[] = [
  ["playback_url", "", 200, 403],
  ["stat_url", "", 200, 200],
  ["stat_url", "?skip_player_activity=1", 200, 200],
  ["command_url", "?method=set_player_activity_timeout&timeout=60", 200, 200],
  ["command_url", "?method=nothing", 200, 200],
];

for (const path of ["/ace/getstream", "/ace/manifest.m3u8"]) {
  test(`${path}: session URLs answer with the statuses that clients expect`, async () => {
    const app = fakeApp();
    const { response } = await app.json(`${path}?format=json`, {
      method: "POST",
      body: JSON.stringify({ transport_file_data: base64(film.bytes) }),
    });
    const statuses = async () => {
      const found = [];
      for (const [url, query] of SESSION_URLS) {
        const answer = await app.call(`${response[url]}${query}`);
        await answer.body?.cancel();
        found.push(answer.status);
      }
      return found;
    };
    assert.deepEqual(
      await statuses(),
      SESSION_URLS.map(([, , playing]) => playing),
    );
    await app.json(`${response.command_url}?method=stop`);
    assert.deepEqual(
      await statuses(),
      SESSION_URLS.map(([, , , over]) => over),
    );
  });
}
