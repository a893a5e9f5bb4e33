import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { SluiceError } from "../../src/base/errors.ts";
import { engineSettings, readConfig, unknownVariables } from "../../src/settings/config.ts";
import { parseDuration, parseSize } from "../../src/settings/kinds.ts";
import { settingsTable, variableOf } from "../../src/settings/settings.ts";

const table = settingsTable({ dataDir: "/data/sluice" });

function read(flags: Record<string, string>, environment: Record<string, string> = {}, content?: unknown) {
  const file = content === undefined ? undefined : { path: "/etc/config.json", content };
  return readConfig(table, { flags: new Map(Object.entries(flags)), environment, file });
}

function refusal(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof SluiceError);
    assert.equal(error.code, "bad_configuration");
    return error.message;
  }
  throw new Error("nothing was refused");
}

test("readConfig: defaults", () => {
  const config = read({});
  assert.equal(config.host, "::");
  assert.equal(config.httpPort, 6878);
  assert.equal(config.p2pPort, 8621);
  assert.equal(config.dataDir, "/data/sluice");
  assert.equal(config.cacheLimit, 20e9);
  assert.equal(config.compat, "document");
});

test("readConfig trackers: announce URLs, unchanged; anything else is refused", () => {
  const urls = ["udp://tracker.example:6969/announce", "https://t.example/Announce?key=a"];
  assert.deepEqual(engineSettings(read({ trackers: urls.join(", ") })).trackers, urls);
  assert.deepEqual(read({}, {}, { trackers: urls }).trackers, urls);
  assert.deepEqual(read({}).trackers, []);
  for (const text of ["tracker.example", "ftp://a/", "http://a/?info_hash=1", "udp://a b"])
    assert.match(
      refusal(() => read({ trackers: text })),
      /^trackers: expected announce URLs/,
      text,
    );
});

test("readConfig: a flag overrides a variable, the config file and the default, in this order", () => {
  const environment = { SLUICE_HTTP_PORT: "2000", SLUICE_P2P_PORT: "2001" };
  const content = { "http-port": 3000, "p2p-port": 3001, "segment-seconds": 4 };
  const config = read({ "http-port": "1000" }, environment, content);
  assert.equal(config.httpPort, 1000);
  assert.equal(config.p2pPort, 2001);
  assert.equal(config.segmentSeconds, 4);
});

test("readConfig ignores an empty variable", () => {
  assert.equal(read({}, { SLUICE_HTTP_PORT: "" }).httpPort, 6878);
});

test("readConfig: errors name the setting, the source and the expected value", () => {
  assert.equal(
    refusal(() => read({ "http-port": "99999" })),
    'http-port: expected a whole number from 0 to 65535, but the flag --http-port is "99999"',
  );
  assert.equal(
    refusal(() => read({}, { SLUICE_CACHE_LIMIT: "lots" })),
    'cache-limit: expected a size such as 20GB or 512MiB, but the variable SLUICE_CACHE_LIMIT is "lots"',
  );
  assert.equal(
    refusal(() => read({}, {}, { compat: "old" })),
    'compat: expected one of document, deployed, but "compat" in /etc/config.json is "old"',
  );
  assert.match(
    refusal(() => read({}, {}, { host: 12 })),
    /"host" in \/etc\/config\.json is 12$/,
  );
});

test("readConfig refuses a config file that is not an object or has an unknown setting", () => {
  assert.match(
    refusal(() => read({}, {}, [])),
    /expected a JSON object/,
  );
  assert.match(
    refusal(() => read({}, {}, { "htp-port": 1 })),
    /unknown setting "htp-port"; did you mean http-port\?/,
  );
});

test("unknownVariables names a misspelt variable and the nearest setting", () => {
  assert.deepEqual(unknownVariables(table, { SLUICE_HTTP_PORT: "1", PATH: "x", SLUICE_CONFIG: "x" }), []);
  assert.match(
    unknownVariables(table, { SLUICE_HTP_PORT: "1" })[0]!,
    /SLUICE_HTP_PORT .*did you mean SLUICE_HTTP_PORT/,
  );
});

test("settingsTable: the kind of every setting accepts its shown default", () => {
  for (const setting of Object.values(table)) {
    if (["none", "any"].includes(setting.shownDefault) || setting.shownDefault.startsWith("$")) continue;
    const flags = new Map([[setting.name, setting.shownDefault]]);
    const config = readConfig(table, { flags, environment: {}, file: undefined });
    assert.ok(
      Object.values(config).some((value) => isDeepStrictEqual(value, setting.default)),
      setting.name,
    );
  }
});

test("engineSettings: the URL of a bucket", () => {
  const url = "s3://KEY:a%2Fb%2Bc@films/sluice/tv?endpoint=https://minio.lan:9000/&region=eu-1&limit=2TB";
  assert.deepEqual(engineSettings(read({ cache: url })).bucket, {
    endpoint: "https://minio.lan:9000",
    bucket: "films",
    prefix: "sluice/tv/",
    region: "eu-1",
    keyId: "KEY",
    secret: "a/b+c",
    limitBytes: 2e12,
  });
  const aws = engineSettings(read({ cache: "s3://KEY:SECRET@films?region=eu-central-1" })).bucket;
  assert.deepEqual([aws?.endpoint, aws?.prefix], ["https://s3.eu-central-1.amazonaws.com", ""]);
  assert.equal(engineSettings(read({})).bucket, undefined);
  const wrong = [
    "s3://films",
    "s3://K:S@films/a b",
    "s3://K:S@films?limit=x",
    "s3://K:S@films?endpoint=ftp://h",
    "s3://K:S@films?rgion=x",
  ];
  for (const cache of wrong)
    assert.throws(
      () => read({ cache }),
      (error: Error) => /expected s3:/.test(error.message) && !error.message.includes(cache),
      cache,
    );
});

test("settingsTable has the variables of the interface", () => {
  const variables = Object.values(table).map(variableOf);
  const expected = ["HOST", "HTTP_PORT", "P2P_PORT", "DATA_DIR", "CACHE_LIMIT", "LOG", "COMPAT"];
  for (const name of expected) assert.ok(variables.includes(`SLUICE_${name}`), name);
});

test("engineSettings: sizes in bytes and times in milliseconds", () => {
  const settings = engineSettings(
    read({ "cache-limit": "1GB", "session-idle": "2m", "upload-limit": "500KB/s" }),
  );
  assert.equal(settings.cacheLimitBytes, 1e9);
  assert.equal(settings.sessionIdleMs, 120_000);
  assert.equal(settings.uploadLimit, 500_000);
});

test("parseSize reads decimal and binary units and refuses everything else", () => {
  const cases: [string, number | undefined][] = [
    ["0", 0],
    ["20GB", 20e9],
    ["64MiB", 64 * 2 ** 20],
    ["1.5 gb", 1.5e9],
    ["10k", 10_000],
    ["1TiB", 2 ** 40],
    ["1 B", 1],
    ["-1", undefined],
    ["1e3", undefined],
    ["GB", undefined],
    ["1XB", undefined],
    ["99999999TB", undefined],
    ["", undefined],
  ];
  for (const [text, bytes] of cases) assert.equal(parseSize(text), bytes, text);
});

test("parseDuration reads ms, s, m, h and bare seconds and refuses everything else", () => {
  const cases: [string, number | undefined][] = [
    ["250ms", 250],
    ["30s", 30_000],
    ["30", 30_000],
    ["1.5m", 90_000],
    ["2h", 7_200_000],
    ["1d", undefined],
    ["-5s", undefined],
    ["1000h", undefined],
  ];
  for (const [text, ms] of cases) assert.equal(parseDuration(text), ms, text);
});
