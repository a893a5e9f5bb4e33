import { dlopen, FFIType, type Pointer, ptr } from "bun:ffi";
import type { Socket } from "node:net";

/** Size of the buffer, which all connections share: it stays in the processor's cache while its bytes are copied to their pieces. */
const BUFFER_BYTES = 256 * 1024;
/** `MSG_DONTWAIT` of Linux: the call never blocks. */
const DO_NOT_WAIT = 0x40;
/** glibc, then musl. */
const LIBRARIES = ["libc.so.6", `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`];

type Receive = (descriptor: number, into: Pointer, length: number, flags: number) => number;

interface Receiver {
  readonly receive: Receive;
  readonly buffer: Uint8Array;
  readonly address: Pointer;
}

/** Undefined until the first use, null if the system's function cannot be called. */
let receiver: Receiver | null | undefined;

/**
 * Reads what a socket has received without waiting, by the system's `recv`: Bun creates a new array of up to 512 KiB for each read.
 * Returns a view that the next call overwrites; undefined if nothing has arrived, at the end of the stream, after an error, and on
 * other systems than Linux. Bun then reports the end or the error by itself. Call it only while Bun holds no bytes of the socket back.
 */
export function receiveNow(socket: Socket): Uint8Array | undefined {
  if (receiver === undefined) receiver = openReceiver();
  const descriptor = descriptorOf(socket);
  if (receiver === null || descriptor === undefined) return undefined;
  const { receive, buffer, address } = receiver;
  const length = receive(descriptor, address, BUFFER_BYTES, DO_NOT_WAIT);
  if (length <= 0) return undefined;
  return buffer.subarray(0, length);
}

function openReceiver(): Receiver | null {
  if (process.platform !== "linux") return null;
  for (const library of LIBRARIES) {
    try {
      const { symbols } = dlopen(library, {
        recv: { args: [FFIType.i32, FFIType.ptr, FFIType.u64, FFIType.i32], returns: FFIType.i32 },
      });
      const buffer = new Uint8Array(BUFFER_BYTES);
      return { receive: symbols.recv as Receive, buffer, address: ptr(buffer) };
    } catch {
      // This system has the other library, or none that Bun can open: Bun's own reads remain.
    }
  }
  return null;
}

/** The descriptor of an open socket. Bun exposes it on the handle of `node:net` sockets. */
function descriptorOf(socket: Socket): number | undefined {
  const handle = (socket as { readonly _handle?: { readonly fd?: unknown } | null })._handle;
  return typeof handle?.fd === "number" && handle.fd >= 0 ? handle.fd : undefined;
}
