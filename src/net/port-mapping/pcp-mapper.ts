import { addressScope } from "../../base/address.ts";
import { equalBytes } from "../../base/bytes.ts";
import type { MappedProtocol } from "../../wire/router/nat-pmp.ts";
import {
  decodePcpResponse,
  encodePcpMapRequest,
  type PcpResponse,
  pcpResultText,
} from "../../wire/router/pcp.ts";
import { askRouter } from "./ask-router.ts";
import {
  LEASE_SECONDS,
  type OpenMapper,
  type PortRequest,
  type RouterDependencies,
  RouterError,
  type RouterLocation,
} from "./contract.ts";

/** RFC 6887 section 7.4: the requested external port or address is not available. */
const CANNOT_PROVIDE_EXTERNAL = 11;
const NONCE_BYTES = 12;

/** Maps ports by PCP (RFC 6887) over IPv4. The first request shows whether the router supports it. */
export const openPcp: OpenMapper = async (dependencies, location) => {
  const nonces: Record<MappedProtocol, Uint8Array> = {
    tcp: dependencies.runtime.randomBytes(NONCE_BYTES),
    udp: dependencies.runtime.randomBytes(NONCE_BYTES),
  };
  const ask = (request: PortRequest, externalPort: number, lifetimeSeconds: number, signal: AbortSignal) =>
    askMap(
      dependencies,
      location,
      { ...request, externalPort, lifetimeSeconds, nonce: nonces[request.protocol] },
      signal,
    );
  return {
    kind: "PCP",
    routerName: "",
    async map(request, externalPort, signal) {
      const answer = await ask(request, externalPort, LEASE_SECONDS, signal);
      const { lifetimeSeconds, epochSeconds, externalAddress } = answer;
      if (answer.externalPort === 0) throw new RouterError("the router mapped no port");
      const isAddress = addressScope(externalAddress) !== "unspecified";
      return {
        ...request,
        externalPort: answer.externalPort,
        externalAddress: isAddress ? externalAddress : undefined,
        lifetimeSeconds,
        epochSeconds,
      };
    },
    async unmap(mapped, signal) {
      await ask(mapped, 0, 0, signal);
    },
  };
};

async function askMap(
  dependencies: RouterDependencies,
  location: RouterLocation,
  request: PortRequest & { externalPort: number; lifetimeSeconds: number; nonce: Uint8Array },
  signal: AbortSignal,
): Promise<Extract<PcpResponse, { kind: "map" }>> {
  const datagram = encodePcpMapRequest({ ...request, clientAddress: location.own.host });
  const read = (bytes: Uint8Array) => {
    const answer = decodePcpResponse(bytes);
    if (answer.kind === "version") return answer;
    const isOurs = equalBytes(answer.nonce, request.nonce) && answer.protocol === request.protocol;
    return isOurs && answer.internalPort === request.internalPort ? answer : undefined;
  };
  const answer = await askRouter(dependencies, location, datagram, read, signal);
  if (answer.kind === "version")
    throw new RouterError("the router supports another version of PCP", "silent");
  if (answer.result !== 0)
    throw new RouterError(
      pcpResultText(answer.result),
      answer.result === CANNOT_PROVIDE_EXTERNAL ? "conflict" : "refused",
    );
  return answer;
}
