import assert from "node:assert/strict";
import { test } from "node:test";
import type { DeviceMedia } from "../../src/devices/contract.ts";
import { describeRenderer } from "../../src/devices/dlna-renderer.ts";
import { ETH, fakeLan, rendererDescription, TV } from "./fake-lan.ts";

const FILM: DeviceMedia = {
  url: "http://192.168.1.5:6878/ace/r/1/2?a=1&b=2",
  mime: "video/mp2t",
  title: 'A <"film"> & more',
  isLive: false,
  bytes: 1000,
  pictureUrl: undefined,
  subtitles: [
    {
      language: "en",
      title: "English",
      vttUrl: "http://192.168.1.5/1.vtt",
      srtUrl: "http://192.168.1.5/1.srt",
    },
  ],
};

interface Options {
  readonly sink?: string;
  readonly seekModes?: readonly string[];
  /** Answers of actions, by name: XML of the values, or the number of an error. */
  readonly values?: Record<string, string | number>;
}

/** A connected renderer; `calls` are the actions with their XML. */
async function renderer({ sink = "", seekModes = ["REL_TIME"], values = {} }: Options = {}) {
  const lan = fakeLan();
  const calls: { action: string; body: string }[] = [];
  lan.respond = ({ url, headers }, body) => {
    if (url.pathname === "/d.xml") return { text: rendererDescription() };
    const allowed = seekModes.map((mode) => `<allowedValue>${mode}</allowedValue>`).join("");
    if (url.pathname === "/AVTransport.xml")
      return {
        text: `<scpd><serviceStateTable><stateVariable><name>A_ARG_TYPE_SeekMode</name><allowedValueList>${allowed}</allowedValueList></stateVariable></serviceStateTable></scpd>`,
      };
    if (url.pathname === "/RenderingControl.xml")
      return {
        text: "<scpd><stateVariable><name>Volume</name><allowedValueRange><minimum>0</minimum><maximum>50</maximum></allowedValueRange></stateVariable></scpd>",
      };
    const action = /#(\w+)"$/.exec(headers.soapaction ?? "")?.[1];
    if (action === undefined) return undefined;
    calls.push({ action, body });
    const value = action === "GetProtocolInfo" ? `<Sink>${sink}</Sink>` : (values[action] ?? "");
    const result =
      typeof value === "number"
        ? `<s:Fault><UPnPError><errorCode>${value}</errorCode><errorDescription>No</errorDescription></UPnPError></s:Fault>`
        : `<u:${action}Response>${value}</u:${action}Response>`;
    if (typeof value === "number") delete values[action];
    return {
      status: typeof value === "number" ? 500 : 200,
      text: `<s:Envelope><s:Body>${result}</s:Body></s:Envelope>`,
    };
  };
  const location = new URL(`http://${TV}/d.xml`);
  const sighting = { kind: "upnp", location, host: TV, network: ETH } as const;
  const device = await describeRenderer(lan.runtime, sighting, new AbortController().signal);
  const control = await device.connect();
  calls.length = 0;
  return { control, calls, clock: lan.clock };
}

test("DlnaControl.play: sets the address with escaped metadata and subtitles, then plays", async () => {
  const { control, calls } = await renderer({ sink: "http-get:*:video/vnd.dlna.mpeg-tts:*" });
  await control.play(FILM);
  assert.deepEqual(
    calls.map(({ action }) => action),
    ["SetAVTransportURI", "Play"],
  );
  const { body } = calls[0]!;
  assert.match(
    body,
    /<CurrentURI>http:\/\/192\.168\.1\.5:6878\/ace\/r\/1\/2\?a=1&amp;b=2&amp;mime=video%2Fvnd\.dlna\.mpeg-tts</,
  );
  // The document is escaped once as metadata, and the title in it once more.
  assert.match(body, /&lt;dc:title&gt;A &amp;lt;&amp;quot;film&amp;quot;&amp;gt; &amp;amp; more&lt;/);
  assert.match(body, /http-get:\*:video\/vnd\.dlna\.mpeg-tts:DLNA\.ORG_OP=01/);
  assert.match(body, /http:\/\/192\.168\.1\.5\/1\.srt/);
});

test("DlnaControl.play: a renderer that refuses a new address while it plays is stopped first", async () => {
  const { control, calls } = await renderer({ values: { SetAVTransportURI: 705 } });
  await control.play(FILM);
  assert.deepEqual(
    calls.map(({ action }) => action),
    ["SetAVTransportURI", "Stop", "SetAVTransportURI", "Play"],
  );
  const other = await renderer({ values: { SetAVTransportURI: 714 } });
  await assert.rejects(other.control.play(FILM), /No \(714\)/);
});

test("DlnaControl.pause: is sent again while the renderer continues to play, and fails if it never stops", async () => {
  const state = (text: string) => `<CurrentTransportState>${text}</CurrentTransportState>`;
  const values = { GetTransportInfo: state("PLAYING") };
  const { control, calls, clock } = await renderer({ values });
  const paused = control.pause();
  await clock.advance(900);
  values.GetTransportInfo = state("PAUSED_PLAYBACK");
  await clock.advance(1_000);
  await paused;
  assert.deepEqual(
    calls.map(({ action }) => action),
    ["Pause", "GetTransportInfo", "Pause", "GetTransportInfo"],
  );
  values.GetTransportInfo = state("PLAYING");
  const ignored = assert.rejects(control.pause(), /continues to play/);
  await clock.advance(5_000);
  await ignored;
});

test("DlnaControl.seek: by the mode that the service description lists", async () => {
  for (const [seekModes, unit] of [
    [["REL_TIME", "ABS_TIME"], "REL_TIME"],
    [["TRACK_NR", "ABS_TIME"], "ABS_TIME"],
    [[], "REL_TIME"],
  ] as const) {
    const { control, calls } = await renderer({ seekModes });
    await control.seek(3_725.9);
    assert.match(calls[0]!.body, new RegExp(`<Unit>${unit}</Unit><Target>1:02:05</Target>`));
  }
});

test("DlnaControl.status: state, position, duration and volume in the renderer's own range", async () => {
  const { control, calls } = await renderer({
    values: {
      GetTransportInfo: "<CurrentTransportState>PAUSED_PLAYBACK</CurrentTransportState>",
      GetPositionInfo: "<TrackDuration>1:00:00.500</TrackDuration><RelTime>0:01:05</RelTime>",
      GetVolume: "<CurrentVolume>25</CurrentVolume>",
    },
  });
  assert.deepEqual(await control.status(), {
    state: "paused",
    volume: 0.5,
    positionSeconds: 65,
    durationSeconds: 3_600.5,
  });
  await control.setVolume(0.5);
  assert.match(calls.at(-1)!.body, /<DesiredVolume>25<\/DesiredVolume>/);
});

test("DlnaControl.status: a live stream has no duration, and values that are not implemented are left out", async () => {
  const { control } = await renderer({
    values: {
      GetTransportInfo: "<CurrentTransportState>TRANSITIONING</CurrentTransportState>",
      GetPositionInfo: "<TrackDuration>0:00:00</TrackDuration><RelTime>NOT_IMPLEMENTED</RelTime>",
      GetVolume: 402,
    },
  });
  assert.deepEqual(await control.status(), {
    state: "buffering",
    volume: undefined,
    positionSeconds: undefined,
    durationSeconds: undefined,
  });
});

test("DlnaControl.plays: types under the names that renderers use; without a list everything is tried", async () => {
  const { control } = await renderer({ sink: "http-get:*:video/quicktime:*,rtsp-rtp-udp:*:video/webm:*" });
  assert.deepEqual(
    ["video/mp4", "video/mp2t", "video/webm"].map((mime) => control.plays(mime)),
    [true, false, false],
  );
  assert.equal((await renderer()).control.plays("video/webm"), true);
});
