// @ts-check
import { openForm } from "../parts/dialog.js";
import { field, make } from "../parts/dom.js";
import { t } from "../parts/text.js";
import { showToast } from "../parts/toast.js";

const MAX_MINUTES = 1_440;

/** @typedef {import("../parts/api.js").EngineApi} EngineApi */
/** @typedef {import("./contract.js").Broadcast} Broadcast */

/**
 * Opens the form that records a broadcast. Recordings are of items of the playlist, so the broadcast becomes one.
 *
 * @param {EngineApi} api
 * @param {Broadcast} broadcast
 */
export function openRecordForm(api, broadcast) {
  const { title } = broadcast;
  const minutes = make("input", { type: "number", min: 1, max: MAX_MINUTES, value: 60, required: true });
  openForm(
    t("Record {title}", { title }),
    [
      field(t("Minutes"), minutes),
      make("p", { class: "hint" }, t("The broadcast is added to the playlist, if it is not there.")),
    ],
    t("Record now"),
    async () => {
      const id = await itemOf(api, broadcast);
      const start = Math.floor(Date.now() / 1000);
      await api.call("recording_add", { id, title, start, stop: start + 60 * Number(minutes.value) });
      showToast(t("Recording started; see Watch → Recordings"));
    },
  );
}

/**
 * Returns the item of the playlist that plays a broadcast.
 *
 * @param {EngineApi} api
 * @param {Broadcast} broadcast
 * @returns {Promise<number>}
 */
async function itemOf(api, { title, infohash }) {
  const { playlist } = await api.call("playlist_get", { search: title });
  const known = /** @type {{ id: number, infohash: string | null }[]} */ (playlist).find(
    (item) => item.infohash === infohash,
  );
  return known?.id ?? (await api.call("playlist_add_item", { title, infohash: infohash ?? "", is_live: 1 }));
}
