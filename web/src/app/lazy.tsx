// Screens whose code is loaded when they are first shown.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

/** Makes a component of one that is loaded. A failed load says so and can be repeated. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | undefined;
  return function Lazy(props: P) {
    const [, setDone] = useState(0);
    const [failed, setFailed] = useState(false);
    useEffect(() => {
      if (loaded) return;
      let gone = false;
      load().then(
        (it) => {
          loaded = it;
          if (!gone) setDone(1);
        },
        () => !gone && setFailed(true),
      );
      return () => {
        gone = true;
      };
    }, []);
    const Loaded = loaded;
    if (Loaded) return <Loaded {...props} />;
    if (!failed) return null;
    return (
      <div class="failure" role="alert">
        <p>This part of the page could not be loaded: the hub may have been updated or stopped.</p>
        <button type="button" class="small-button" onClick={() => location.reload()}>
          Load the page again
        </button>
      </div>
    );
  };
}

