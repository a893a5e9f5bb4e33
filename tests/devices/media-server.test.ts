import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import { createMediaServer } from "../../src/devices/media-server.ts";
import type { CatalogEntry, MediaCatalog } from "../../src/devices/media-server-contract.ts";
import { decodeRendererDescription, decodeServiceLimits } from "../../src/wire/upnp/media-renderer.ts";
import { decodeSoapResponse, encodeSoapCall } from "../../src/wire/upnp/soap.ts";
import { childText, elementsNamed, readXml } from "../../src/wire/xml.ts";

const SERVER = createMediaServer({ udn: "uuid:1", name: "Sluice <den>", version: "1" }, 7);

/** A root with 10,000 channels. */
function bigCatalog(): MediaCatalog & { readonly asked: [number, number][] } {
  const asked: [number, number][] = [];
  const entryAt = (i: number): CatalogEntry => ({
    kind: "channel",
    id: `item-${i}`,
    parentId: "0",
    title: `Channel ${i} & "more"`,
    url: `http://192.168.1.5/${i}.ts?a&b`,
  });
  return {
    asked,
    entry: async (id) =>
      id === "0" ? { kind: "folder", id, parentId: "-1", title: "All", childCount: 10_000 } : undefined,
    async children(id, start, count) {
      if (id !== "0") return undefined;
      asked.push([start, count]);
      const length = Math.max(0, Math.min(count, 10_000 - start));
      return { total: 10_000, entries: Array.from({ length }, (_, i) => entryAt(start + i)) };
    },
  };
}

async function call(
  action: string,
  values: Record<string, string | number> = {},
  catalog: MediaCatalog = bigCatalog(),
) {
  const service = "ContentDirectory";
  const body = encodeSoapCall({ serviceType: "x", action, parameters: Object.entries(values) });
  const answer = (await SERVER.call(service, body, catalog))!;
  return { ...decodeSoapResponse(encodeUtf8(answer.xml), action), status: answer.status };
}

const CHILDREN = { ObjectID: "0", BrowseFlag: "BrowseDirectChildren" };

test("Browse: pages through 10,000 items, at most 100 at a time", async () => {
  const catalog = bigCatalog();
  let seen = 0;
  for (;;) {
    const answer = await call("Browse", { ...CHILDREN, StartingIndex: seen, RequestedCount: 0 }, catalog);
    assert.ok(answer.ok);
    assert.equal(answer.values.get("TotalMatches"), "10000");
    const returned = Number(answer.values.get("NumberReturned"));
    if (returned === 0) break;
    seen += returned;
  }
  assert.equal(seen, 10_000);
  assert.ok(catalog.asked.every(([, count]) => count === 100));
});

test("Browse: titles and addresses survive both levels of escaping", async () => {
  const answer = await call("Browse", { ...CHILDREN, StartingIndex: 9_999, RequestedCount: 5 });
  assert.ok(answer.ok);
  const didl = readXml(answer.values.get("Result")!);
  const [item] = [...elementsNamed(didl, "item")];
  assert.equal(childText(item!, "title"), 'Channel 9999 & "more"');
  assert.equal(childText(item!, "res"), "http://192.168.1.5/9999.ts?a&b");
});

test("Browse: the metadata of the root; an unknown object is error 701", async () => {
  const root = await call("Browse", { ObjectID: "0", BrowseFlag: "BrowseMetadata" });
  assert.ok(root.ok);
  assert.match(root.values.get("Result")!, /<container id="0" parentID="-1" childCount="10000"/);
  const unknown = await call("Browse", { ...CHILDREN, ObjectID: "x" });
  assert.deepEqual([unknown.ok, !unknown.ok && unknown.code, unknown.status], [false, 701, 500]);
});

test("MediaServer.call: other actions, Samsung's list of features, and errors", async () => {
  const features = await call("X_GetFeatureList");
  assert.ok(features.ok);
  assert.match(features.values.get("FeatureList")!, /<container id="V" type="object.item.videoItem"\/>/);
  for (const [action, name, value] of [
    ["GetSystemUpdateID", "Id", "7"],
    ["GetSortCapabilities", "SortCaps", ""],
  ] as const) {
    const answer = await call(action);
    assert.ok(answer.ok);
    assert.equal(answer.values.get(name), value);
  }
  const search = await call("Search");
  assert.equal(!search.ok && search.code, 401);
  const broken = await SERVER.call("ContentDirectory", encodeUtf8("<x"), bigCatalog());
  assert.deepEqual([broken?.status, /<errorCode>402</.test(broken?.xml ?? "")], [500, true]);
  assert.equal(await SERVER.call("constructor", encodeUtf8("<x"), bigCatalog()), undefined);
});

test("MediaServer: descriptions that a UPnP reader accepts; it is no renderer", () => {
  const root = readXml(SERVER.description());
  const [device] = [...elementsNamed(root, "device")];
  assert.equal(childText(device!, "friendlyName"), "Sluice <den>");
  assert.throws(() => decodeRendererDescription(encodeUtf8(SERVER.description())), /not a media renderer/);
  for (const name of ["ContentDirectory", "ConnectionManager"]) {
    const text = SERVER.service(name)!;
    const scpd = readXml(text);
    const variables = new Set(
      [...elementsNamed(scpd, "stateVariable")].map((each) => childText(each, "name")),
    );
    for (const argument of elementsNamed(scpd, "argument"))
      assert.ok(
        variables.has(childText(argument, "relatedStateVariable")),
        childText(argument, "name") ?? "",
      );
    assert.equal(decodeServiceLimits(encodeUtf8(text)).maxVolume, undefined);
  }
  assert.equal(SERVER.service("toString"), undefined);
});
