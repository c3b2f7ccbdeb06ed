package errclass

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Kafka classifies an error of franz-go, however deeply it is wrapped. It never returns Isolate,
// because a refusal by a broker does not mean that the event is bad. Call the function TooLarge
// first to recognise a record that is too large. The function Postgres describes how errors of
// contexts are classified. A nil error is Unknown.
func Kafka(err error) Class {
	return worst(err, kafkaNode, networkNode).class
}

// TooLarge reports whether the broker or the client refused a record for its size. The same record
// would be refused again.
func TooLarge(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge)
}

func kafkaNode(node error) (finding, bool) {
	switch e := node.(type) { //nolint:errorlint // only this node, not its chain
	case *kerr.Error:
		return finding{class: kafkaCode(e), reason: kafkaReason(e)}, true
	case *kgo.ErrDataLoss:
		return finding{class: RetryUnready, reason: "data_loss"}, true
	case *kgo.ErrDecompressTooLarge:
		return finding{class: RetryUnready, reason: "decompress"}, true
	case *kgo.ErrFirstReadEOF:
		// The broker closed the connection at once. The usual cause is that only one of the two
		// sides uses TLS or SASL.
		return finding{class: RetryUnready, reason: "first_read_eof"}, true
	}
	return kafkaSentinel(node)
}

func kafkaSentinel(node error) (finding, bool) {
	switch node {
	// The client joins these two errors with the last error of its attempts, if there is one.
	case kgo.ErrRecordTimeout:
		return finding{class: Retry, reason: "timeout", vague: true}, true
	case kgo.ErrRecordRetries:
		return finding{class: Retry, reason: "record_retries", vague: true}, true
	case kgo.ErrMaxBuffered:
		return finding{class: Retry, reason: "max_buffered"}, true
	case kgo.ErrAborting:
		return finding{class: Retry, reason: "aborting"}, true
	case kgo.ErrClientClosed:
		return finding{class: Retry, reason: "closed"}, true
	case kgo.ErrMaxDecompress:
		return finding{class: RetryUnready, reason: "decompress"}, true
	}
	// The client has unexported errors, such as an unknown controller. The client's own function
	// decides whether they are retried. This function is called only for errors that wrap nothing.
	// Otherwise a wrapped error would not be classified itself.
	if len(children(node)) == 0 && kgo.IsRetryableBrokerErr(node) {
		if f, ok := networkNode(node); ok {
			return f, true
		}
		return finding{class: Retry, reason: "broker"}, true
	}
	return finding{}, false
}

// kafkaCode classifies one Kafka error code. For a code that is not in kafkaCodes, the field
// Retriable of franz-go decides.
func kafkaCode(e *kerr.Error) Class {
	if c, ok := kafkaCodes[e.Code]; ok {
		return c
	}
	if e.Retriable {
		return Retry
	}
	return Unknown
}

// kafkaReason returns the protocol's name of the code.
func kafkaReason(e *kerr.Error) string {
	if known := kerr.TypedErrorForCode(e.Code); known != nil {
		return known.Message
	}
	return "unknown"
}

// kafkaCodes contains the codes that are not classified by the field Retriable of franz-go. The
// class of every code is in testdata/kafkacodes.txt, with which a test compares it.
// Source: https://kafka.apache.org/protocol#protocol_error_codes
var kafkaCodes = map[int16]Class{
	// The protocol does not call these errors retriable. But they end when there is a new leader,
	// coordinator, generation or session.
	kerr.StaleControllerEpoch.Code:       Retry,
	kerr.IllegalGeneration.Code:          Retry,
	kerr.UnknownMemberID.Code:            Retry,
	kerr.RebalanceInProgress.Code:        Retry,
	kerr.TopicAlreadyExists.Code:         Retry,
	kerr.OutOfOrderSequenceNumber.Code:   Retry,
	kerr.DuplicateSequenceNumber.Code:    Retry,
	kerr.InvalidProducerEpoch.Code:       Retry,
	kerr.InvalidProducerIDMapping.Code:   Retry,
	kerr.ConcurrentTransactions.Code:     Retry,
	kerr.OperationNotAttempted.Code:      Retry,
	kerr.UnknownProducerID.Code:          Retry,
	kerr.ReassignmentInProgress.Code:     Retry,
	kerr.NonEmptyGroup.Code:              Retry,
	kerr.GroupIDNotFound.Code:            Retry,
	kerr.StaleBrokerEpoch.Code:           Retry,
	kerr.MemberIDRequired.Code:           Retry,
	kerr.NoReassignmentInProgress.Code:   Retry,
	kerr.GroupSubscribedToTopic.Code:     Retry,
	kerr.ProducerFenced.Code:             Retry,
	kerr.BrokerIDNotRegistered.Code:      Retry,
	kerr.IneligibleReplica.Code:          Retry,
	kerr.NewLeaderElected.Code:           Retry,
	kerr.OffsetMovedToTieredStorage.Code: Retry,
	kerr.FencedMemberEpoch.Code:          Retry,
	kerr.UnreleasedInstanceID.Code:       Retry,
	kerr.StaleMemberEpoch.Code:           Retry,
	kerr.UnknownControllerID.Code:        Retry,
	kerr.RebootstrapRequired.Code:        Retry,
	kerr.ControllerIDNotRegistered.Code:  Retry,

	// A person has to fix the cause: an ACL, credentials, a topic, a setting or a broker version.
	// These codes include a lost position (OFFSET_OUT_OF_RANGE) and a recreated topic.
	kerr.OffsetOutOfRange.Code:                   RetryUnready,
	kerr.UnknownTopicOrPartition.Code:            RetryUnready,
	kerr.MessageTooLarge.Code:                    RetryUnready,
	kerr.InvalidTopicException.Code:              RetryUnready,
	kerr.RecordListTooLarge.Code:                 RetryUnready,
	kerr.InconsistentGroupProtocol.Code:          RetryUnready,
	kerr.InvalidGroupID.Code:                     RetryUnready,
	kerr.InvalidSessionTimeout.Code:              RetryUnready,
	kerr.TopicAuthorizationFailed.Code:           RetryUnready,
	kerr.GroupAuthorizationFailed.Code:           RetryUnready,
	kerr.ClusterAuthorizationFailed.Code:         RetryUnready,
	kerr.InvalidTimestamp.Code:                   RetryUnready,
	kerr.UnsupportedSaslMechanism.Code:           RetryUnready,
	kerr.IllegalSaslState.Code:                   RetryUnready,
	kerr.UnsupportedVersion.Code:                 RetryUnready,
	kerr.InvalidPartitions.Code:                  RetryUnready,
	kerr.InvalidReplicationFactor.Code:           RetryUnready,
	kerr.InvalidReplicaAssignment.Code:           RetryUnready,
	kerr.InvalidConfig.Code:                      RetryUnready,
	kerr.UnsupportedForMessageFormat.Code:        RetryUnready,
	kerr.PolicyViolation.Code:                    RetryUnready,
	kerr.TransactionalIDAuthorizationFailed.Code: RetryUnready,
	kerr.SecurityDisabled.Code:                   RetryUnready,
	kerr.LogDirNotFound.Code:                     RetryUnready,
	kerr.SaslAuthenticationFailed.Code:           RetryUnready,
	kerr.DelegationTokenAuthDisabled.Code:        RetryUnready,
	kerr.DelegationTokenNotFound.Code:            RetryUnready,
	kerr.DelegationTokenOwnerMismatch.Code:       RetryUnready,
	kerr.DelegationTokenRequestNotAllowed.Code:   RetryUnready,
	kerr.DelegationTokenAuthorizationFailed.Code: RetryUnready,
	kerr.DelegationTokenExpired.Code:             RetryUnready,
	kerr.InvalidPrincipalType.Code:               RetryUnready,
	kerr.TopicDeletionDisabled.Code:              RetryUnready,
	kerr.UnsupportedCompressionType.Code:         RetryUnready,
	kerr.GroupMaxSizeReached.Code:                RetryUnready,
	kerr.FencedInstanceID.Code:                   RetryUnready,
	kerr.InvalidRecord.Code:                      RetryUnready,
	kerr.ResourceNotFound.Code:                   RetryUnready,
	kerr.UnacceptableCredential.Code:             RetryUnready,
	kerr.PrincipalDeserializationFailure.Code:    RetryUnready,
	kerr.UnknownTopicID.Code:                     RetryUnready,
	kerr.InconsistentTopicID.Code:                RetryUnready,
	kerr.InconsistentClusterID.Code:              RetryUnready,
	kerr.UnsupportedAssignor.Code:                RetryUnready,
	kerr.MismatchedEndpointType.Code:             RetryUnready,
	kerr.UnsupportedEndpointType.Code:            RetryUnready,

	// This program must not send such requests.
	kerr.InvalidFetchSize.Code:          Bug,
	kerr.OffsetMetadataTooLarge.Code:    Bug,
	kerr.InvalidRequiredAcks.Code:       Bug,
	kerr.InvalidCommitOffsetSize.Code:   Bug,
	kerr.InvalidRequest.Code:            Bug,
	kerr.InvalidTxnState.Code:           Bug,
	kerr.InvalidTransactionTimeout.Code: Bug,
	kerr.InvalidRegularExpression.Code:  Bug,

	// No request of this program leads to this error of share groups.
	kerr.ShareSessionLimitReached.Code: Unknown,
}
