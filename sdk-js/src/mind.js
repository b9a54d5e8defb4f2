/** Context memory of a scripted hub: `working`, and `items`, oldest first. */
export class ScriptedContextMemory {
  working = {};
  items = [];

  /** Functions of the contract. */
  contract(checked) {
    const { working } = this;
    const set = (name, value) => {
      delete working[name];
      const isEmpty = value === undefined || value === null || (typeof value === "object" && Object.keys(value).length === 0);
      if (!isEmpty) working[name] = value;
    };
    const without = (name, key, value) => (working[name] ?? []).filter((known) => known[key] !== value);
    return {
      working: checked(() => JSON.stringify(working)),
      setGoal: checked((goal) => set("goal", goal)),
      addThought: checked((content, isPrivate) => {
        const thoughts = working.thoughts ?? [];
        if (thoughts.some((known) => known.content === content && Boolean(known.private) === isPrivate)) return;
        set("thoughts", [...thoughts, { content, ...(isPrivate ? { private: true } : {}) }]);
      }),
      decide: checked((key, value, reason, isPrivate) => {
        const optional = { ...(reason ? { reason } : {}), ...(isPrivate ? { private: true } : {}) };
        set("decisions", [...without("decisions", "key", key), { key, value: JSON.parse(value), ...optional }]);
      }),
      setVariable: checked((name, value, isPrivate) => {
        const { [name]: _, ...others } = working.variables ?? {};
        const privateNames = (working.privateVariables ?? []).filter((known) => known !== name);
        set("variables", value === undefined || value === null ? others : { ...others, [name]: JSON.parse(value) });
        set("privateVariables", isPrivate ? [...privateNames, name] : privateNames);
      }),
      remember: checked((json) => {
        const item = JSON.parse(json);
        this.items = [...this.items.filter((known) => known.id !== item.id), item];
      }),
      recall: checked((query, limit) => {
        const words = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
        const queryWords = words(query);
        const score = (item) => queryWords.filter((word) => words(JSON.stringify(item)).includes(word)).length;
        const matches = [...this.items].reverse().filter((item) => queryWords.length === 0 || score(item) > 0);
        return JSON.stringify(matches.sort((one, other) => score(other) - score(one)).slice(0, limit));
      }),
      forget: checked((id) => void (this.items = this.items.filter((known) => known.id !== id))),
    };
  }
}
