// List that draws only the rows in view, for any number of rows of one height.

import { useEffect, useImperativeHandle, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";

export interface VirtualListHandle {
  scrollTo: (index: number) => void;
}

interface Props {
  length: number;
  rowHeight: number;
  label: string;
  render: (index: number) => ComponentChildren;
  /** Where the list begins, in pixels: for one that is shown again. */
  top?: number;
  /** Reports the position in pixels. */
  onTop?: (top: number) => void;
  /** Reports the rows in view. */
  onRange: (from: number, to: number) => void;
  /** Reports that a row, or something in it, got the focus. */
  onFocusRow?: (index: number) => void;
  handle?: { current: VirtualListHandle | null };
}

/** Rows that are drawn above and below the view. */
const MARGIN = 10;

export function VirtualList({ length, rowHeight, label, render, onRange, top = 0, onTop, onFocusRow, handle }: Props) {
  const element = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top, height: 800 });
  const read = () => {
    const scroller = element.current;
    if (!scroller) return;
    const next = { top: scroller.scrollTop, height: scroller.clientHeight };
    onTop?.(next.top);
    setView((old) => {
      const isSame = Math.floor(old.top / rowHeight) === Math.floor(next.top / rowHeight) && old.height === next.height;
      return isSame ? old : next;
    });
  };
  useLayoutEffect(() => {
    if (element.current && top > 0) element.current.scrollTop = top;
    read();
    const observer = new ResizeObserver(read);
    if (element.current) observer.observe(element.current);
    return () => observer.disconnect();
  }, [rowHeight]);
  useImperativeHandle(handle ?? { current: null }, () => ({
    scrollTo: (index) => {
      const scroller = element.current;
      if (!scroller) return;
      const [top, bottom] = [index * rowHeight, (index + 1) * rowHeight];
      if (top < scroller.scrollTop) scroller.scrollTop = top;
      else if (bottom > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = bottom - scroller.clientHeight;
    },
  }));
  const first = Math.max(0, Math.floor(view.top / rowHeight) - MARGIN);
  const last = Math.min(length - 1, Math.ceil((view.top + view.height) / rowHeight) + MARGIN);
  useEffect(() => {
    if (length > 0) onRange(first, Math.max(first, last));
  }, [first, last, length]);
  const rows: ComponentChildren[] = [];
  for (let index = first; index <= last; index += 1) {
    rows.push(
      <div
        key={index}
        class="virtual-row"
        role="listitem"
        aria-setsize={length}
        aria-posinset={index + 1}
        onFocusCapture={() => onFocusRow?.(index)}
        style={{ transform: `translateY(${index * rowHeight}px)`, height: `${rowHeight}px` }}
      >
        {render(index)}
      </div>,
    );
  }
  return (
    // Focusable, so that the keyboard can scroll it before its rows are here.
    <div class="virtual-list" ref={element} onScroll={read} tabIndex={0} role="group" aria-label={label}>
      <div class="virtual-rows" role="list" aria-label={label} style={{ height: `${length * rowHeight}px` }}>
        {rows}
      </div>
    </div>
  );
}
