package projection

import (
	"encoding/binary"
	"slices"
	"strings"

	"projector/projection/event"
)

// window is a ring of the last records of a partition that count for the breaker. Each slot has
// the class of a root dead letter, or none.
type window struct {
	slots  []uint8 // 0: no root dead letter; else a class, see slotOf
	next   int     // index of the slot that is written next; in a full window it has the oldest record
	filled int
	roots  int
}

func newWindow(size int) window { return window{slots: make([]uint8, size)} }

func (w *window) full() bool { return w.filled == len(w.slots) }

// sound adds records that are not root dead letters.
func (w *window) sound(n int) {
	for ; n > 0 && w.roots > 0; n-- {
		w.add(0)
	}
	w.filled = min(len(w.slots), w.filled+n) // without roots all slots are equal, so the start of the ring does not matter
}

// root adds a root dead letter.
func (w *window) root(class event.Class) { w.add(slotOf(class)) }

func (w *window) add(slot uint8) {
	if w.slots[w.next] != 0 {
		w.roots--
	}
	if slot != 0 {
		w.roots++
	}
	w.slots[w.next] = slot
	if w.next++; w.next == len(w.slots) {
		w.next = 0
	}
	w.filled = min(len(w.slots), w.filled+1)
}

// most returns the most frequent class of the root dead letters, and their number.
func (w *window) most() (event.Class, int) {
	var counts [256]int
	for _, slot := range w.slots {
		counts[slot]++
	}
	counts[0] = 0
	most := 0
	for slot, n := range &counts {
		if n > counts[most] {
			most = slot
		}
	}
	return classOf(uint8(most)), counts[most]
}

// encode returns the window as bytes: the number of records, then for each root dead letter,
// oldest first, the number of records between it and the one before, and its class. Without
// dead letters it is 1 or 2 bytes.
func (w *window) encode() string {
	text := binary.AppendUvarint(nil, uint64(w.filled)) //nolint:gosec // G115: not negative
	sound := uint64(0)
	for i, left := w.filled, w.roots; left > 0; i-- {
		slot := w.slots[(w.next-i+len(w.slots))%len(w.slots)]
		if slot == 0 {
			sound++
			continue
		}
		text = append(binary.AppendUvarint(text, sound), slot)
		sound = 0
		left--
	}
	return string(text)
}

// decodeWindow reads a window, with as many of the latest records as fit. A window that
// cannot be read is empty.
func decodeWindow(text string, size int) window {
	in := strings.NewReader(text)
	filled, err := binary.ReadUvarint(in)
	if err != nil || filled > MaxBreakerWindow {
		return newWindow(size)
	}
	w, rest := newWindow(size), int(filled)
	for in.Len() > 0 {
		sound, err := binary.ReadUvarint(in)
		slot, noClass := in.ReadByte()
		if err != nil || noClass != nil || slot == 0 || sound >= uint64(rest) {
			return newWindow(size)
		}
		w.sound(int(sound)) //nolint:gosec // G115: less than rest
		w.add(slot)
		rest -= int(sound) + 1 //nolint:gosec // G115: less than rest
	}
	w.sound(rest)
	return w
}

// slotOf returns the number of a class in a window. It is stored in the database, so the order of
// event.Classes must not change.
func slotOf(class event.Class) uint8 {
	return uint8(slices.Index(event.Classes(), class) + 2) //nolint:gosec // G115: there are few; 1 is one that is not known
}

func classOf(slot uint8) event.Class {
	if at := int(slot) - 2; at >= 0 && at < len(event.Classes()) {
		return event.Classes()[at]
	}
	return "unknown"
}
