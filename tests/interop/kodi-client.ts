import { mkdir, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { type RunningProcess, startProcess } from "../parts/process.ts";

/** A Kodi without a screen, which the test controls by JSON-RPC. */
export interface Kodi {
  /** Calls a method; resolves with its result, rejects with its error. */
  call<T>(method: string, params?: object): Promise<T>;
  stop(): Promise<void>;
}

/** The sound goes nowhere, else Kodi waits for a device. */
const SOUND = "pcm.!default { type null }\nctl.!default { type null }\n";

/** Starts Kodi in `home` with the television list and the guide of an engine at `base`. `port`: a free one for JSON-RPC. */
export async function startKodi(home: string, base: string, port: number): Promise<Kodi> {
  const data = `${home}/.kodi/userdata`;
  await mkdir(`${data}/addon_data/pvr.iptvsimple`, { recursive: true });
  const settings = {
    m3uPathType: "1",
    m3uUrl: `${base}/tv/kodi`,
    epgPathType: "1",
    epgUrl: `${base}/epg.xml`,
    catchupEnabled: "true",
  };
  const rows = Object.entries({
    kodi_addon_instance_name: "test",
    kodi_addon_instance_enabled: "true",
    ...settings,
  });
  const lines = rows.map(([id, value]) => `<setting id="${id}">${value}</setting>`).join("");
  // Without the file of earlier versions, the add-on replaces that of its instance.
  for (const name of ["instance-settings-1.xml", "settings.xml"])
    await writeFile(`${data}/addon_data/pvr.iptvsimple/${name}`, `<settings version="2">${lines}</settings>`);
  const advanced = `<jsonrpc><compactoutput>true</compactoutput><tcpport>${port}</tcpport></jsonrpc>`;
  await writeFile(`${data}/advancedsettings.xml`, `<advancedsettings>${advanced}</advancedsettings>`);
  await writeFile(`${home}/.asoundrc`, SOUND);
  const env = { HOME: home, LIBGL_ALWAYS_SOFTWARE: "1", DISPLAY: undefined };
  const run = ["-a", "-s", "-screen 0 1024x600x24", "kodi", "--standalone"];
  const kodi = startProcess("xvfb-run", run, { env });
  const call = <T>(method: string, params: object = {}) => request<T>(port, method, params);
  for (let left = 120; ; left--) {
    const pong = await call("JSONRPC.Ping").catch(() => undefined);
    if (pong === "pong") break;
    if (left === 0) throw new Error(`Kodi did not start:\n${kodi.output()}`);
    await pause(1_000);
  }
  return { call, stop: () => quit(call, kodi) };
}

/** Waits; Kodi reports changes only to those who ask. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function quit(call: Kodi["call"], kodi: RunningProcess): Promise<void> {
  await call("Application.Quit").catch(() => {});
  await Promise.race([new Promise((resolve) => kodi.child.once("close", resolve)), pause(15_000)]);
  await kodi.stop();
}

/** Messages follow each other without separators, and notifications come between them. */
function request<T>(port: number, method: string, params: object): Promise<T> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    let text = "";
    const end = (act: () => void) => {
      socket.destroy();
      act();
    };
    socket.setTimeout(60_000, () => end(() => reject(new Error(`${method}: no answer`))));
    socket.on("error", reject);
    socket.on("close", () => reject(new Error(`${method}: closed`)));
    socket.on("data", (bytes) => {
      text += bytes.toString("latin1");
      for (const message of messagesOf(text)) {
        const { id, result, error } = JSON.parse(message) as {
          id?: number;
          result?: T;
          error?: { message: string };
        };
        if (id !== 1 && error === undefined) continue;
        return end(() => (error ? reject(new Error(`${method}: ${error.message}`)) : resolve(result as T)));
      }
    });
    socket.write(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
  });
}

/** Returns the complete objects of a text without separators. */
function messagesOf(text: string): string[] {
  const found: string[] = [];
  let [from, depth] = [0, 0];
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}]/g)) {
    if (token === "{" && depth++ === 0) from = index;
    if (token === "}" && --depth === 0) found.push(text.slice(from, index + 1));
  }
  return found;
}
