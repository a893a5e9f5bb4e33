import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";
import { startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { run } from "../parts/process.ts";
import { tempFolder } from "../parts/torrent-files.ts";

const { test } = await testsThatNeed("xmltv");

/** Of the package, else tv_validate_file would fetch it. */
const DTD = "/usr/share/xmltv/xmltv.dtd";
const HOUR = 3_600;
/** The ids of the guide; the second and third are not valid in XMLTV. */
const IDS = ["one.uk", "two", "Three.uk@SD"];

const LIST = `#EXTM3U\n${IDS.map((id, i) => `#EXTINF:-1 tvg-id="${id}",Channel ${i}\nhttp://x.example/${i}.ts\n`).join("")}`;

/** A guide with all that the engine keeps of a programme, and markup that it has to escape. */
function guide(): string {
  const from = HOUR * Math.floor(Date.now() / 1000 / HOUR);
  const time = (seconds: number) =>
    `${new Date(1000 * seconds).toISOString().replace(/\D/g, "").slice(0, 14)} +0000`;
  const channels = IDS.map(
    (id) =>
      `<channel id="${id}"><display-name>Channel ${id}</display-name><icon src="http://x.example/${id}.png?a=1&amp;b=2"/></channel>`,
  );
  const programmes = IDS.flatMap((id) =>
    [0, 1, 2].map(
      (n) =>
        `<programme channel="${id}" start="${time(from + n * HOUR)}" stop="${time(from + (n + 1) * HOUR)}"><title>A &lt;b&gt; &amp; “c” ${n}</title><sub-title>Part ${n}</sub-title><desc>]]&gt; \u00e9</desc><category>News</category><category>Weather</category><icon src="http://x.example/${n}.jpg"/><episode-num system="onscreen">S02E0${n}</episode-num></programme>`,
    ),
  );
  return `<?xml version="1.0"?><tv>${channels.join("")}${programmes.join("")}</tv>`;
}

test("tv_validate_file accepts the guide of the engine", { timeout: 60_000 }, async (t) => {
  const scratch = await tempFolder("xmltv");
  t.after(() => scratch.remove());
  const server = createServer(({ url }, response) => response.end(url === "/guide.xml" ? guide() : LIST));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const env = { SLUICE_DHT: "off", SLUICE_LSD: "off", SLUICE_PORT_MAPPING: "off", SLUICE_STORE: "memory" };
  const engine = await startEngine({ env });
  t.after(() => engine.stop());
  const call = async <T>(method: string, values: Readonly<Record<string, string>> = {}) => {
    const query = new URLSearchParams({ ...values, method });
    const answer = await (await fetch(`${engine.url}/server/api?${query}`)).json();
    assert.equal(answer.error, null, method);
    return answer.result as T;
  };
  const { token } = await call<{ token: string }>("get_api_access_token");
  const { port } = server.address() as AddressInfo;
  const list = { type: "content", name: "tv", category: "", update_interval: "0" };
  await call("external_playlist_add", { ...list, url: `http://127.0.0.1:${port}/list.m3u`, token });
  await call("epg_source_add", { token, url: `http://127.0.0.1:${port}/guide.xml` });
  let text = "";
  while (text.split("<programme ").length <= 9) text = await (await fetch(`${engine.url}/epg.xml`)).text();
  const packed = await (await fetch(`${engine.url}/epg.xml.gz`)).arrayBuffer();
  assert.equal(gunzipSync(new Uint8Array(packed)).toString(), text);
  const file = scratch.file("epg.xml");
  await writeFile(file, text);
  const said = await run("tv_validate_file", ["--dtd-file", DTD, file]);
  assert.match(said, /Validated ok/);
});
