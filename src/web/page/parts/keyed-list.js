// @ts-check
/**
 * An element of a list that can show another value.
 *
 * @template Item
 * @typedef {{ element: HTMLElement, update: (item: Item) => void }} Row
 */

/**
 * A list that keeps the elements of its items while their values change, so that the focus and open menus stay.
 *
 * @template Item
 */
export class KeyedList {
  #root;
  #create;
  #keyOf;
  /** @type {Map<string, Row<Item>>} */
  #rows = new Map();

  /**
   * @param {HTMLElement} root
   * @param {(item: Item) => string} keyOf
   * @param {(item: Item) => Row<Item>} create
   */
  constructor(root, keyOf, create) {
    this.#root = root;
    this.#keyOf = keyOf;
    this.#create = create;
  }

  /** @param {readonly Item[]} items in their order */
  update(items) {
    const keys = new Set(items.map(this.#keyOf));
    for (const [key, row] of this.#rows) {
      if (keys.has(key)) continue;
      row.element.remove();
      this.#rows.delete(key);
    }
    for (const [at, item] of items.entries()) {
      const key = this.#keyOf(item);
      const row = this.#rows.get(key) ?? this.#create(item);
      this.#rows.set(key, row);
      row.update(item);
      if (this.#root.children[at] !== row.element)
        this.#root.insertBefore(row.element, this.#root.children[at] ?? null);
    }
  }
}
