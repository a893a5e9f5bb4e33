import { createSocket } from "node:dgram";
import { createServer } from "node:net";

const GROUP = "239.255.42.42";

/** Returns true if this machine delivers multicast on its loopback network back to itself. */
export async function hasMulticast(): Promise<boolean> {
  const socket = createSocket({ type: "udp4", reuseAddr: true });
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once("error", reject);
      socket.bind(0, "0.0.0.0", resolve);
    });
    socket.addMembership(GROUP, "127.0.0.1");
    socket.setMulticastInterface("127.0.0.1");
    return await new Promise<boolean>((resolve) => {
      setTimeout(() => resolve(false), 1_000).unref();
      socket.once("message", () => resolve(true));
      socket.send(new Uint8Array(1), socket.address().port, GROUP, (error) => error && resolve(false));
    });
  } catch {
    return false;
  } finally {
    socket.close();
  }
}

/** Returns true if a TCP socket can listen on `host`. */
export function listensOn(host: string): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(0, host, () => server.close(() => resolve(true)));
  });
}
