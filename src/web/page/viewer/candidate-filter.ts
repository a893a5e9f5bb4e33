import { addressScope, canonicalAddress } from "../../../base/address.ts";

/** Host and type of an ICE candidate (RFC 8839 5.1): foundation, component, transport, priority, host, port, "typ", type. */
const CANDIDATE = /^(?:a=)?candidate:\S+ \d+ \S+ \d+ (\S+) \d+ typ (\w+)/;

/**
 * Decides to which addresses the page may connect at the request of another page. Names that the browser made (mDNS) and public addresses
 * are allowed; an address of a local network only if the browser has revealed one of the same network, because then the user has
 * permitted it. Otherwise a page could make visitors' browsers send packets to devices of their home.
 */
export class CandidateFilter {
  /** Networks that this browser has revealed: the first three numbers of IPv4 addresses, or four groups of IPv6. */
  readonly #own = new Set<string>();

  /** Reads a candidate of this browser. */
  revealed(candidate: string): void {
    const host = CANDIDATE.exec(candidate)?.[1];
    if (host !== undefined && !host.endsWith(".local")) this.#own.add(networkOf(host));
  }

  /** Returns whether the page may use a candidate of another page. */
  allows(candidate: string): boolean {
    if (candidate === "") return true; // The end of the candidates.
    const host = CANDIDATE.exec(candidate)?.[1];
    if (host === undefined) return false;
    if (/^[0-9a-f-]{36}\.local$/i.test(host)) return true;
    // Any other name could be one of the local network.
    const address = canonicalAddress(host);
    if (address === undefined) return false;
    return addressScope(address) === "global" || this.#own.has(networkOf(address));
  }

  /** Returns a session description without the candidates that are not allowed. */
  description(sdp: string): string {
    return sdp
      .split(/\r?\n/)
      .filter((line) => !line.startsWith("a=candidate:") || this.allows(line))
      .join("\r\n");
  }
}

function networkOf(host: string): string {
  return host.includes(":")
    ? host.toLowerCase().split(":").slice(0, 4).join(":")
    : host.split(".").slice(0, 3).join(".");
}

/** Makes all connections of this page obey `filter`, whichever library opens them. */
export function filterConnections(filter: CandidateFilter): void {
  const { RTCPeerConnection: Plain } = globalThis;
  if (Plain === undefined) return;
  globalThis.RTCPeerConnection = class extends Plain {
    constructor(configuration?: RTCConfiguration) {
      super(configuration);
      this.addEventListener("icecandidate", ({ candidate }) => {
        if (candidate) filter.revealed(candidate.candidate);
      });
    }

    override addIceCandidate(candidate?: RTCIceCandidateInit | null): Promise<void> {
      const text = candidate?.candidate;
      return text === undefined || filter.allows(text)
        ? super.addIceCandidate(candidate ?? undefined)
        : Promise.resolve();
    }

    override setRemoteDescription(description: RTCSessionDescriptionInit): Promise<void> {
      const { type, sdp = "" } = description;
      return super.setRemoteDescription({ type, sdp: filter.description(sdp) });
    }
  } as typeof RTCPeerConnection;
}
