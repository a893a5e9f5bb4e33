import assert from "node:assert/strict";
import { test } from "node:test";
import { createMediaServer } from "../../src/devices/media-server.ts";
import { openMedia } from "../../src/remux/open-media.ts";
import { decodeSoapResponse, encodeSoapCall } from "../../src/wire/upnp/soap.ts";
import { base64, filmTorrent } from "../engine/fake-engine.ts";
import { fixture } from "../parts/media-fixtures.ts";
import { memoryAccess, wholeTs } from "../remux/media-checks.ts";
import { fakeApp } from "./client.ts";
import { fakeRecordings } from "./fake-recordings.ts";

const FILM = filmTorrent();

/** Routes with the media server, a favourite channel, a film, and a hidden item. */
async function server() {
  const mediaServer = createMediaServer({ udn: "uuid:1", name: "Sluice", version: "1" }, 1);
  const { recordings } = fakeRecordings();
  const { call, json, library, transfers } = fakeApp({ dependencies: { mediaServer, recordings } });
  const content = {
    transport: "bt",
    ...{ contentId: null, infohash: FILM.infohash, magnet: null, url: null },
  } as const;
  const channel = await library.items.add({ title: "Channel", content, isLive: 1 });
  const film = await library.items.add({ title: "Film", content, isLive: 0 });
  const hidden = await library.items.add({ title: "Hidden", content });
  await library.items.update(channel.id, { isFavorite: true });
  await library.items.update(hidden.id, { isEnabled: false });
  const browse = async (id: string, flag = "BrowseDirectChildren") => {
    const parameters = [
      ["ObjectID", id],
      ["BrowseFlag", flag],
    ] as const;
    const body = encodeSoapCall({ serviceType: "x", action: "Browse", parameters });
    const response = await call("/dlna/control/ContentDirectory", { method: "POST", body });
    const answer = decodeSoapResponse(new Uint8Array(await response.arrayBuffer()), "Browse");
    const result = answer.ok ? answer.values.get("Result")! : "";
    return { answer, titles: [...result.matchAll(/<dc:title>([^<]*)</g)].map(([, title]) => title), result };
  };
  /** Opens the film's transfer, as if its metadata had been found in the swarm. */
  const openFilm = async () => {
    const media = await openMedia(memoryAccess(await fixture("end.mp4")), { targetSeconds: 2 });
    transfers.prepare = (transfer) => {
      transfer.bringData();
      transfer.media = async () => media;
    };
    const body = JSON.stringify({ transport_file_data: base64(FILM.bytes) });
    await json("/ace/getstream?format=json", { method: "POST", body });
    return (await wholeTs(media)).length;
  };
  return { call, browse, openFilm, channel, film, hidden };
}

test("the media server lists favourites, all items and recordings; hidden items are left out", async () => {
  const { browse, hidden } = await server();
  for (const root of ["0", "V"])
    assert.deepEqual((await browse(root)).titles, ["Favourites", "All channels and films", "Recordings"]);
  assert.deepEqual((await browse("favourites")).titles, ["Channel"]);
  assert.deepEqual((await browse("all")).titles, ["Channel", "Film"]);
  for (const empty of ["I", "A"]) assert.deepEqual((await browse(empty)).titles, []);
  for (const unknown of ["list-99", "item-99", `item-${hidden.id}`, "x"])
    assert.equal((await browse(unknown, "BrowseMetadata")).answer.ok, false, unknown);
});

test("the media server describes items with an address of this engine and what can be done with it", async () => {
  const { browse, channel, film } = await server();
  const live = await browse(`item-${channel.id}`, "BrowseMetadata");
  assert.match(live.result, /videoBroadcast/);
  assert.match(live.result, /http-get:\*:video\/mpeg:DLNA\.ORG_OP=00/);
  assert.ok(live.result.includes(`>http://127.0.0.1:6878/dlna/media/item-${channel.id}.ts<`));
  assert.match((await browse(`item-${film.id}`, "BrowseMetadata")).result, /DLNA\.ORG_OP=01/);
});

test("/dlna/media: the head of a channel starts nothing; a film is played without a redirect", async () => {
  const { call, openFilm, channel, film } = await server();
  const head = await call(`/dlna/media/item-${channel.id}.ts`, { method: "HEAD" });
  assert.equal(head.status, 200);
  assert.equal(head.headers.get("content-type"), "video/mpeg");
  assert.match(head.headers.get("contentfeatures.dlna.org") ?? "", /OP=00/);
  const size = await openFilm();
  const played = await call(`/dlna/media/item-${film.id}.ts`, { headers: { range: "bytes=1000-1099" } });
  assert.deepEqual(
    [played.status, played.headers.get("content-range"), played.headers.get("content-type")],
    [206, `bytes 1000-1099/${size}`, "video/mpeg"],
  );
  assert.equal((await played.arrayBuffer()).byteLength, 100);
  assert.match(played.headers.get("contentfeatures.dlna.org") ?? "", /OP=01/);
  assert.equal(played.headers.get("location"), null);
  assert.equal((await call("/dlna/media/item-99.ts")).status, 404);
  assert.equal((await call("/dlna/media/x.ts")).status, 404);
});

test("/dlna: documents are XML, a long call is refused, pages of other sites see nothing, and it is off by default", async () => {
  const { call } = await server();
  for (const name of ["description", "ContentDirectory", "ConnectionManager"])
    assert.match((await call(`/dlna/${name}.xml`)).headers.get("content-type") ?? "", /^text\/xml/);
  assert.equal((await call("/dlna/other.xml")).status, 404);
  const long = { method: "POST", body: "x".repeat(20_000) };
  assert.equal((await call("/dlna/control/ContentDirectory", long)).status, 413);
  const foreign = { headers: { origin: "https://evil.example" } };
  assert.equal((await call("/dlna/description.xml", foreign)).status, 403);
  assert.equal((await fakeApp().call("/dlna/description.xml")).status, 404);
});
