import { decodeUtf8, encodeUtf8 } from "../base/utf8.ts";
import { lanRequest } from "../outbound/lan-http.ts";
import type { Device, DeviceControl, DeviceMedia, DeviceRuntime, DeviceStatus } from "./contract.ts";
import { deviceUrl } from "./device-networks.ts";
import { MDNS_TYPES, type Sighting } from "./device-search.ts";
import { JsonRpcTcp } from "./json-rpc-tcp.ts";

/** Answers of the methods used here have less than 1 kB. */
const MAX_ANSWER_BYTES = 64 * 1024;
const MAX_NAME = 100;

/** Calls a JSON-RPC method of a Kodi; resolves to its result. */
type Call = (method: string, params?: object) => Promise<unknown>;

/** Returns the Kodi that a sighting announces; undefined if its address is not that of the sender. */
export function kodiDevice(
  runtime: Pick<DeviceRuntime, "http" | "net" | "clock">,
  { service, host, network }: Extract<Sighting, { kind: "mdns" }>,
): Device | undefined {
  const url = deviceUrl(`http://${host}:${service.port}/jsonrpc`, host, network);
  if (url === undefined) return undefined;
  const isTcp = service.type === MDNS_TYPES[0];
  const post = async (method: string, params: object) => {
    const body = encodeUtf8(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
    const request = { url, method: "POST", headers: { "content-type": "application/json" }, body } as const;
    const { status, bytes } = await lanRequest(runtime.http, request, MAX_ANSWER_BYTES);
    if (status === 401)
      throw new Error("Kodi asks for a password; allow remote control from other systems in its settings");
    if (status !== 200) throw new Error(`Kodi answered with status ${status}`);
    return JSON.parse(decodeUtf8(bytes)) as unknown;
  };
  const name = service.instance.slice(0, MAX_NAME);
  const connect = () => {
    const tcp = isTcp ? new JsonRpcTcp(runtime, { host, port: service.port }) : undefined;
    const call: Call = async (method, params = {}) =>
      resultOf(await (tcp ? tcp.call(method, params) : post(method, params)));
    return connectKodi(call, () => tcp?.close());
  };
  return {
    id: `kodi:${host}`,
    kind: "kodi",
    name,
    model: "Kodi",
    iconUrl: undefined,
    host,
    network,
    connect,
  };
}

function resultOf(answer: unknown): unknown {
  const { result, error } = (answer ?? {}) as { result?: unknown; error?: { message?: unknown } };
  if (error !== undefined) throw new Error(`Kodi refused: ${String(error.message).slice(0, 100)}`);
  return result;
}

/** Rejects if Kodi does not answer. */
async function connectKodi(call: Call, close: () => void): Promise<DeviceControl> {
  await call("JSONRPC.Ping");
  const player = async (): Promise<number | undefined> => {
    const active = await call("Player.GetActivePlayers");
    const [first] = Array.isArray(active) ? active : [];
    const id = (first as { playerid?: unknown } | undefined)?.playerid;
    return typeof id === "number" ? id : undefined;
  };
  const onPlayer = async (method: string, params: object) => {
    const playerid = await player();
    if (playerid === undefined) throw new Error("Kodi plays nothing");
    await call(method, { playerid, ...params });
  };
  return {
    plays: () => true,
    play: async ({ url }: DeviceMedia) => void (await call("Player.Open", { item: { file: url } })),
    resume: () => onPlayer("Player.PlayPause", { play: true }),
    pause: () => onPlayer("Player.PlayPause", { play: false }),
    stop: () => onPlayer("Player.Stop", {}),
    seek: (seconds) => onPlayer("Player.Seek", { value: { time: timeOf(seconds) } }),
    setVolume: async (volume) =>
      void (await call("Application.SetVolume", { volume: Math.round(100 * volume) })),
    async status(): Promise<DeviceStatus> {
      const { volume } = ((await call("Application.GetProperties", { properties: ["volume"] })) ?? {}) as {
        volume?: unknown;
      };
      const level = typeof volume === "number" ? volume / 100 : undefined;
      const playerid = await player();
      const idle = {
        state: "idle",
        volume: level,
        positionSeconds: undefined,
        durationSeconds: undefined,
      } as const;
      if (playerid === undefined) return idle;
      const properties = ["time", "totaltime", "speed"];
      const facts = ((await call("Player.GetProperties", { playerid, properties })) ?? {}) as Record<
        string,
        unknown
      >;
      return {
        ...idle,
        state: facts.speed === 0 ? "paused" : "playing",
        positionSeconds: secondsOf(facts.time),
        durationSeconds: secondsOf(facts.totaltime) || undefined,
      };
    },
    close,
  };
}

function timeOf(seconds: number) {
  const whole = Math.floor(seconds);
  const milliseconds = Math.floor(1000 * (seconds - whole));
  return {
    hours: Math.floor(whole / 3600),
    minutes: Math.floor(whole / 60) % 60,
    seconds: whole % 60,
    milliseconds,
  };
}

function secondsOf(time: unknown): number | undefined {
  const { hours, minutes, seconds, milliseconds = 0 } = (time ?? {}) as Record<string, unknown>;
  const total = 3600 * Number(hours) + 60 * Number(minutes) + Number(seconds) + Number(milliseconds) / 1000;
  return Number.isFinite(total) ? total : undefined;
}
