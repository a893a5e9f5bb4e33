import {
  decodeNatPmpResponse,
  encodeNatPmpAddressRequest,
  encodeNatPmpMapRequest,
  type NatPmpMapping,
  type NatPmpResponse,
  natPmpResultText,
} from "../../wire/router/nat-pmp.ts";
import { askRouter } from "./ask-router.ts";
import { LEASE_SECONDS, type OpenMapper, RouterError } from "./contract.ts";

/** Maps ports by NAT-PMP (RFC 6886). */
export const openNatPmp: OpenMapper = async (dependencies, location, signal) => {
  const ask = async <Kind extends NatPmpResponse["kind"]>(
    kind: Kind,
    request: Uint8Array,
    matches: (answer: NatPmpResponse) => boolean,
    signal: AbortSignal,
  ): Promise<Extract<NatPmpResponse, { kind: Kind }>> => {
    const read = (bytes: Uint8Array) => {
      const answer = decodeNatPmpResponse(bytes);
      return answer.kind === kind && matches(answer) ? answer : undefined;
    };
    const answer = await askRouter(dependencies, location, request, read, signal);
    if (answer.result !== 0) throw new RouterError(natPmpResultText(answer.result));
    return answer as Extract<NatPmpResponse, { kind: Kind }>;
  };
  const askAddress = async (signal: AbortSignal) => {
    const { address } = await ask("address", encodeNatPmpAddressRequest(), () => true, signal);
    return address === "0.0.0.0" ? undefined : address;
  };
  const askMap = (mapping: NatPmpMapping, signal: AbortSignal) => {
    const { protocol, internalPort } = mapping;
    const matches = (answer: NatPmpResponse) =>
      answer.kind === "map" && answer.protocol === protocol && answer.internalPort === internalPort;
    return ask("map", encodeNatPmpMapRequest(mapping), matches, signal);
  };
  await askAddress(signal);
  return {
    kind: "NAT-PMP",
    routerName: "",
    async map(request, externalPort, signal) {
      const answer = await askMap({ ...request, externalPort, lifetimeSeconds: LEASE_SECONDS }, signal);
      const { lifetimeSeconds, epochSeconds } = answer;
      if (answer.externalPort === 0) throw new RouterError("the router mapped no port");
      const externalAddress = await askAddress(signal);
      return {
        ...request,
        externalPort: answer.externalPort,
        externalAddress,
        lifetimeSeconds,
        epochSeconds,
      };
    },
    async unmap({ protocol, internalPort, externalPort }, signal) {
      await askMap({ protocol, internalPort, externalPort, lifetimeSeconds: 0 }, signal);
    },
  };
};
