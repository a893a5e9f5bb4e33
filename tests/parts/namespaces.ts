import { run } from "./process.ts";

/** A network namespace: programs in it see only the networks that it is wired to. Linux, as root. */
export interface Space {
  readonly name: string;
  /** The arguments before a command that run it in the namespace: `ip netns exec …`. */
  readonly prefix: readonly string[];
  /** Runs a program in the namespace to its end; returns its output. */
  run(command: string, ...args: string[]): Promise<string>;
}

/** A set of namespaces that are removed together. */
export interface Spaces {
  make(name: string): Promise<Space>;
  /** Connects two namespaces. The addresses (`10.0.0.1/24`) of an end belong to its device. */
  wire(a: SpaceEnd, b: SpaceEnd): Promise<void>;
  /** Connects any number of namespaces to a new switch. */
  network(name: string, ends: readonly SpaceEnd[]): Promise<void>;
  remove(): Promise<void>;
}

export interface SpaceEnd {
  readonly space: Space;
  readonly device: string;
  readonly addresses: readonly string[];
}

let count = 0;

/** Returns why this machine cannot make network namespaces; undefined if it can. */
export async function whyNoSpaces(): Promise<string | undefined> {
  if (process.platform !== "linux") return "network namespaces exist only on Linux";
  const name = `sluice-t${process.pid}-${count++}`;
  try {
    await run("ip", ["netns", "add", name]);
    await run("ip", ["-n", name, "link", "add", "va", "type", "veth", "peer", "name", "vb"]);
    return undefined;
  } catch (error) {
    return `network namespaces are not available (install iproute2 and run as root): ${String(error).split("\n")[0]}`;
  } finally {
    await run("ip", ["netns", "del", name]).catch(() => {});
  }
}

/** Makes namespaces that exist until `remove`. */
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
      // Skips duplicate address detection, which delays the address by a second.
      const quick = address.includes(":") ? ["nodad"] : [];
      await ip("-n", space.name, "addr", "add", address, "dev", device, ...quick);
    }
    await ip("-n", space.name, "link", "set", device, "up");
  };
  // The kernel may take a second to notice that both ends are up, and drops what is sent until then.
  const carrier = async ({ space, device }: SpaceEnd) => {
    for (let left = 100; left > 0; left--) {
      if (/ UP /.test(await run("ip", ["-n", space.name, "-br", "link", "show", "dev", device]))) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`${device} in ${space.name} has no carrier`);
  };
  const wire = async (a: SpaceEnd, b: SpaceEnd) => {
    const peer = ["type", "veth", "peer", "name", b.device, "netns", b.space.name];
    await ip("-n", a.space.name, "link", "add", a.device, ...peer);
    await plug(a);
    await plug(b);
    await carrier(a);
    await carrier(b);
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
