import { PYTHON } from "./libtorrent.ts";
import { run } from "./process.ts";

/** A computer of its own network: what runs in it sees only the networks that it is wired to. Linux, as root. */
export interface Space {
  readonly name: string;
  /** Words before a command that run it in here: `ip netns exec …`. */
  readonly prefix: readonly string[];
  /** Runs a program to its end in here; gives what it printed. */
  run(command: string, ...args: string[]): Promise<string>;
}

/** Several, which all go together. */
export interface Spaces {
  make(name: string): Promise<Space>;
  /** Wires two of them: each address (`10.0.0.1/24`, several allowed) is that of its end. */
  wire(a: SpaceEnd, b: SpaceEnd): Promise<void>;
  /** A cable to a new switch, a space of its own, for more than two in one network. */
  network(name: string, ends: readonly SpaceEnd[]): Promise<void>;
  remove(): Promise<void>;
}

export interface SpaceEnd {
  readonly space: Space;
  readonly device: string;
  readonly addresses: readonly string[];
}

let count = 0;

/** Why there can be no network namespaces here; undefined where there can. */
export async function whyNoSpaces(): Promise<string | undefined> {
  if (process.platform !== "linux") return "network namespaces are Linux's";
  const name = `sluice-t${process.pid}-${count++}`;
  try {
    await run("ip", ["netns", "add", name]);
    await run("ip", ["-n", name, "link", "add", "va", "type", "veth", "peer", "name", "vb"]);
    return undefined;
  } catch (error) {
    return `no network namespaces here: ${String(error).split("\n")[0]}`;
  } finally {
    await run("ip", ["netns", "del", name]).catch(() => {});
  }
}

/** Why networks of their own cannot be made here, and filtered, or nobody could play there; undefined where all of it can be. */
export async function whyNoNetworks(): Promise<string | undefined> {
  const noSpaces = await whyNoSpaces();
  if (noSpaces !== undefined) return noSpaces;
  try {
    await run("nft", ["--version"]);
    await run("curl", ["--version"]);
    await run(PYTHON, ["-c", "import libtorrent"]);
    return undefined;
  } catch (error) {
    return String(error).split("\n")[0];
  }
}

/** Makes namespaces, which are there until `remove`. */
export function makeSpaces(): Spaces {
  const names: string[] = [];
  const ip = (...args: string[]) => run("ip", args);
  const make = async (called: string): Promise<Space> => {
    const name = `sluice-t${process.pid}-${count++}-${called}`;
    await ip("netns", "add", name);
    names.push(name);
    await ip("-n", name, "link", "set", "lo", "up");
    const prefix = ["ip", "netns", "exec", name];
    return { name, prefix, run: (command, ...args) => run("ip", [...prefix.slice(1), command, ...args]) };
  };
  const plug = async ({ space, device, addresses }: SpaceEnd) => {
    for (const address of addresses) {
      // Without waiting for whoever else might have that address.
      const quick = address.includes(":") ? ["nodad"] : [];
      await ip("-n", space.name, "addr", "add", address, "dev", device, ...quick);
    }
    await ip("-n", space.name, "link", "set", device, "up");
  };
  const wire = async (a: SpaceEnd, b: SpaceEnd) => {
    const peer = ["type", "veth", "peer", "name", b.device, "netns", b.space.name];
    await ip("-n", a.space.name, "link", "add", a.device, ...peer);
    await plug(a);
    await plug(b);
  };
  return {
    make,
    wire,
    async network(called, ends) {
      const hub = await make(called);
      await ip("-n", hub.name, "link", "add", "bridge", "type", "bridge");
      await ip("-n", hub.name, "link", "set", "bridge", "up");
      for (const [i, end] of ends.entries()) {
        const device = `port${i}`;
        await wire({ space: hub, device, addresses: [] }, end);
        await ip("-n", hub.name, "link", "set", device, "master", "bridge");
      }
    },
    async remove() {
      for (const name of names.splice(0).reverse()) await ip("netns", "del", name).catch(() => {});
    },
  };
}
