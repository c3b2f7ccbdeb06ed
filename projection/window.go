package projection

import (
	"encoding/binary"
	"slices"
	"strings"

	"projector/projection/event"
)

// window is a ring buffer of the latest records of a partition that count for the breaker. Each
// slot contains the class of a root dead letter, which Breaker defines, or 0 for any other record.
type window struct {
	slots  []uint8 // 0, or the class of a root dead letter as slotOf returns it
	next   int     // slot that is written next; the oldest record if the window is full
	filled int
	roots  int
}

func newWindow(size int) window { return window{slots: make([]uint8, size)} }

// set makes w equal to another window.
func (w *window) set(other *window) {
	w.slots = append(w.slots[:0], other.slots...)
	w.next, w.filled, w.roots = other.next, other.filled, other.roots
}

func (w *window) full() bool { return w.filled == len(w.slots) }

// addOthers adds n records that are not root dead letters.
func (w *window) addOthers(n int) {
	for ; n > 0 && w.roots > 0; n-- {
		w.add(0)
	}
	w.filled = min(len(w.slots), w.filled+n) // without root dead letters all slots are equal
}

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

// The method most returns the most frequent class of root dead letters and the number of dead
// letters with this class.
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

// encode returns the window as bytes. First comes the number of records. Then come two values for
// each root dead letter, the oldest first. The first value is the number of other records since the
// previous root dead letter. The second value is the number of its class (see slotOf). Without root
// dead letters the result is at most 3 bytes long.
func (w *window) encode() string {
	text := binary.AppendUvarint(nil, uint64(w.filled)) //nolint:gosec // G115: not negative
	others := uint64(0)
	for i, left := w.filled, w.roots; left > 0; i-- {
		slot := w.slots[(w.next-i+len(w.slots))%len(w.slots)]
		if slot == 0 {
			others++
			continue
		}
		text = append(binary.AppendUvarint(text, others), slot)
		others = 0
		left--
	}
	return string(text)
}

// decodeWindow decodes a window and keeps as many of its latest records as fit into the given size.
// If the text is not valid, the window is empty.
func decodeWindow(text string, size int) window {
	in := strings.NewReader(text)
	filled, err := binary.ReadUvarint(in)
	if err != nil || filled > MaxBreakerWindow {
		return newWindow(size)
	}
	w, rest := newWindow(size), int(filled)
	for in.Len() > 0 {
		others, err := binary.ReadUvarint(in)
		slot, noClass := in.ReadByte()
		if err != nil || noClass != nil || slot == 0 || others >= uint64(rest) {
			return newWindow(size)
		}
		w.addOthers(int(others)) //nolint:gosec // G115: less than rest
		w.add(slot)
		rest -= int(others) + 1 //nolint:gosec // G115: less than rest
	}
	w.addOthers(rest)
	return w
}

// slotOf returns the number of a class in a window. The number is stored in the database, so the
// order of event.Classes must not change.
func slotOf(class event.Class) uint8 {
	return uint8(slices.Index(event.Classes(), class) + 2) //nolint:gosec // G115: there are few; 1 is one that is not known
}

func classOf(slot uint8) event.Class {
	if at := int(slot) - 2; at >= 0 && at < len(event.Classes()) {
		return event.Classes()[at]
	}
	return "unknown"
}
