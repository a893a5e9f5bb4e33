import { messageOf } from "../src/base/errors.ts";
import { presentPlayerStatus } from "./control/service-players.ts";
import type { PlayerClient, Players } from "./http/dependencies.ts";
import { describeError } from "./http/errors.ts";

/** What one stream of events sends of the players: their list, or what one device does. */
export class DeviceEvents {
  readonly #players: Players | undefined;
  readonly #client: PlayerClient;
  readonly #device: string | undefined;
  #isReading = false;
  #json = "";
  #sentJson = "";

  /** `device`: the id of the device whose state is sent; undefined for the list. */
  constructor(players: Players | undefined, client: PlayerClient, device: string | undefined) {
    this.#players = players;
    this.#client = client;
    this.#device = device;
  }

  /** Returns the event of the present state if it has changed; undefined otherwise. Of a device, it is the last state that has arrived. */
  async next(): Promise<{ readonly name: string; readonly json: string } | undefined> {
    if (this.#device !== undefined) void this.#readDevice(this.#device);
    else this.#json = JSON.stringify((await this.#players?.list(this.#client, { waits: false })) ?? []);
    if (this.#json === this.#sentJson) return undefined;
    this.#sentJson = this.#json;
    return { name: this.#device === undefined ? "players" : "device", json: this.#json };
  }

  /** A device may take seconds to answer, which must not delay other events. */
  async #readDevice(id: string): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      if (this.#players === undefined) throw new Error("this engine has no players");
      this.#json = JSON.stringify(presentPlayerStatus(await this.#players.status(id)));
    } catch (thrown) {
      this.#json = JSON.stringify({ problem: describeError(thrown)?.text ?? messageOf(thrown) });
    } finally {
      this.#isReading = false;
    }
  }
}
