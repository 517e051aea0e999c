package gates

import "tazlab.net/castle/ci/cluster/timeline"

// Record is a condition's event as the event log has it, within a layer.
func (e Event) Record(layer string) timeline.Event {
	record := timeline.Event{Time: e.Time, Kind: timeline.KindGate, Layer: layer, Name: e.Condition, Phase: string(e.Phase), Cause: e.Seen}
	if e.Phase != PhaseEnd {
		return record
	}
	switch {
	case e.Err != nil:
		record.Result, record.Cause, record.Next = timeline.ResultFailed, e.Err.Error(), e.Next
	case e.Unproven:
		record.Result, record.Next = timeline.ResultUnproven, e.Next
	default:
		record.Result, record.Cause = timeline.ResultOK, ""
	}
	return record
}
