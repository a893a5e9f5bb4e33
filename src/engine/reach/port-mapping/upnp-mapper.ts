import { canonicalAddress } from "../../../base/address.ts";
import {
  decodeRouterDescription,
  MAX_DESCRIPTION_BYTES,
  type RouterDescription,
  type WanService,
} from "../../../wire/upnp-description.ts";
import { SOAP_ERRORS, type SoapAnswer, type SoapCall } from "../../../wire/upnp-soap.ts";
import {
  LEASE_SECONDS,
  type MappedPort,
  type OpenMapper,
  type PortMapper,
  type PortWish,
  RouterError,
  type RouterParts,
  type RouterPlace,
} from "./contract.ts";
import { callService, fetchDescription } from "./upnp-call.ts";
import { ownUrl, searchRouters } from "./upnp-search.ts";

/** What users see in the list of their router. */
const DESCRIPTION = "Sluice";
/** The service of IGD 2, which can choose another port itself. */
const CHOOSES_PORTS = "urn:schemas-upnp-org:service:WANIPConnection:2";

/** A service, and where it is called. */
interface Callable {
  readonly type: WanService["type"];
  readonly url: URL;
}

/** Ports mapped by UPnP IGD 1 and 2. */
export const openUpnp: OpenMapper = async (parts, place, signal) => {
  let problem: unknown = new RouterError("it has no service that maps ports");
  for (const location of await searchRouters(parts, place, signal)) {
    try {
      const limit = MAX_DESCRIPTION_BYTES;
      const router = await fetchDescription(parts, location, limit, decodeRouterDescription, signal);
      const service = await connected(parts, callables(router, location), signal);
      if (service) return new UpnpMapper(parts, place, service, router.name);
    } catch (thrown) {
      if (!(thrown instanceof RouterError)) throw thrown;
      problem = thrown;
    }
  }
  throw problem;
};

/** The services that are at the router's own address: a description shall not make us call others. */
export function callables({ baseUrl, services }: RouterDescription, location: URL): Callable[] {
  const base = (baseUrl === undefined ? undefined : ownUrl(baseUrl, location.hostname)) ?? location;
  return services.flatMap(({ type, controlUrl }) => {
    const url = ownUrl(controlUrl, location.hostname, base);
    return url ? [{ type, url }] : [];
  });
}

/** The first service that has an address out there; of none has one, the first. */
async function connected(
  parts: RouterParts,
  services: readonly Callable[],
  signal: AbortSignal,
): Promise<Callable | undefined> {
  if (services.length < 2) return services[0];
  for (const service of services) {
    const address = await externalAddress(parts, service, signal).catch((thrown: unknown) => {
      if (thrown instanceof RouterError) return undefined;
      throw thrown;
    });
    if (address !== undefined) return service;
  }
  return services[0];
}

class UpnpMapper implements PortMapper {
  readonly kind = "UPnP";
  readonly routerName: string;
  readonly #parts: RouterParts;
  readonly #place: RouterPlace;
  readonly #service: Callable;
  /** Some know no leases (error 725): such a mapping stays until it is deleted. */
  #leaseSeconds = LEASE_SECONDS;

  constructor(parts: RouterParts, place: RouterPlace, service: Callable, routerName: string) {
    this.#parts = parts;
    this.#place = place;
    this.#service = service;
    this.routerName = routerName;
  }

  async map(wish: PortWish, externalPort: number, signal: AbortSignal): Promise<MappedPort> {
    const mappedAt = await this.#add(wish, externalPort, signal);
    return {
      ...wish,
      externalPort: mappedAt,
      externalAddress: await externalAddress(this.#parts, this.#service, signal),
      lifetimeSeconds: this.#leaseSeconds === 0 ? Number.POSITIVE_INFINITY : this.#leaseSeconds,
      epochSeconds: undefined,
    };
  }

  async unmap({ protocol, externalPort }: MappedPort, signal: AbortSignal): Promise<void> {
    const answer = await this.#call(
      "DeletePortMapping",
      [
        ["NewRemoteHost", ""],
        ["NewExternalPort", externalPort],
        ["NewProtocol", protocol.toUpperCase()],
      ],
      signal,
    );
    if (!answer.ok && answer.code !== SOAP_ERRORS.noSuchEntry) throw refusal(answer);
  }

  /** Maps, and gives the external port. */
  async #add(wish: PortWish, externalPort: number, signal: AbortSignal): Promise<number> {
    const answer = await this.#call("AddPortMapping", this.#mapping(wish, externalPort), signal);
    if (answer.ok) return externalPort;
    const { permanentOnly, invalidArguments, conflict } = SOAP_ERRORS;
    if (this.#leaseSeconds > 0 && (answer.code === permanentOnly || answer.code === invalidArguments)) {
      this.#leaseSeconds = 0;
      return this.#add(wish, externalPort, signal);
    }
    if (answer.code === conflict && this.#service.type === CHOOSES_PORTS)
      return this.#addAny(wish, externalPort, signal);
    throw refusal(answer);
  }

  async #addAny(wish: PortWish, externalPort: number, signal: AbortSignal): Promise<number> {
    const answer = await this.#call("AddAnyPortMapping", this.#mapping(wish, externalPort), signal);
    if (!answer.ok) throw refusal(answer);
    const reserved = answer.values.get("NewReservedPort") ?? "";
    const port = /^\d{1,5}$/.test(reserved) ? Number(reserved) : 0;
    if (port === 0 || port > 65_535) throw new RouterError("it does not say which port it has mapped");
    return port;
  }

  #mapping({ protocol, internalPort }: PortWish, externalPort: number): SoapCall["parameters"] {
    return [
      ["NewRemoteHost", ""],
      ["NewExternalPort", externalPort],
      ["NewProtocol", protocol.toUpperCase()],
      ["NewInternalPort", internalPort],
      ["NewInternalClient", this.#place.own.host],
      ["NewEnabled", 1],
      ["NewPortMappingDescription", DESCRIPTION],
      ["NewLeaseDuration", this.#leaseSeconds],
    ];
  }

  #call(action: string, parameters: SoapCall["parameters"], signal: AbortSignal): Promise<SoapAnswer> {
    const { type, url } = this.#service;
    return callService(this.#parts, url, { serviceType: type, action, parameters }, signal);
  }
}

async function externalAddress(
  parts: RouterParts,
  { type, url }: Callable,
  signal: AbortSignal,
): Promise<string | undefined> {
  const call = { serviceType: type, action: "GetExternalIPAddress", parameters: [] };
  const answer = await callService(parts, url, call, signal);
  if (!answer.ok) return undefined;
  const address = canonicalAddress(answer.values.get("NewExternalIPAddress") ?? "");
  return address === "0.0.0.0" ? undefined : address;
}

function refusal({ code, text }: Extract<SoapAnswer, { ok: false }>): RouterError {
  const isConflict = code === SOAP_ERRORS.conflict;
  const words = code === SOAP_ERRORS.notAuthorised ? "it is set not to do so" : `it refuses: ${text || code}`;
  return isConflict ? new RouterError("that port is another computer's", "conflict") : new RouterError(words);
}
