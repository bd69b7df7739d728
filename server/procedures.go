package server

import (
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/gen/agent/v1/agentv1connect"
	"github.com/stet-dev/stet/gen/aiserver/v1/aiserverv1connect"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
)

// scopes maps procedures to their required scope. Add new procedures here; a missing
// one needs the highest scope.
var scopes = map[string]access.Scope{
	stetv1connect.BlobServiceGetProcedure:       access.Read,
	stetv1connect.BlobServiceHasProcedure:       access.Read,
	stetv1connect.BlobServiceListProcedure:      access.Read,
	stetv1connect.BlobServiceOpenProcedure:      access.Read,
	stetv1connect.BlobServicePutProcedure:       access.Write,
	stetv1connect.BlobServicePutStreamProcedure: access.Write,
	stetv1connect.BlobServiceFlushProcedure:     access.Write,
	stetv1connect.BlobServiceKeepProcedure:      access.Write,

	stetv1connect.RowServiceGetProcedure:    access.Read,
	stetv1connect.RowServiceScanProcedure:   access.Read,
	stetv1connect.RowServiceWatchProcedure:  access.Read,
	stetv1connect.RowServiceCommitProcedure: access.Admin, // bypasses the services

	stetv1connect.StoreServiceInfoProcedure:    access.Read,
	stetv1connect.StoreServiceStatsProcedure:   access.Read,
	stetv1connect.StoreServiceCollectProcedure: access.Admin,
	stetv1connect.StoreServiceFsckProcedure:    access.Admin, // reads everything

	stetv1connect.ConversationServiceGetProcedure:        access.Read,
	stetv1connect.ConversationServiceListProcedure:       access.Read,
	stetv1connect.ConversationServiceHistoryProcedure:    access.Read,
	stetv1connect.ConversationServiceTranscriptProcedure: access.Read,
	stetv1connect.ConversationServiceExportProcedure:     access.Read,
	stetv1connect.ConversationServiceSearchProcedure:     access.Read,
	stetv1connect.ConversationServiceInspectProcedure:    access.Read,
	stetv1connect.ConversationServiceCreateProcedure:     access.Write,
	stetv1connect.ConversationServiceSaveProcedure:       access.Write,
	stetv1connect.ConversationServiceForkProcedure:       access.Write,
	stetv1connect.ConversationServiceSetTitleProcedure:   access.Write,
	stetv1connect.ConversationServiceDeleteProcedure:     access.Write,

	stetv1connect.TransferServiceDownloadProcedure: access.Read,
	stetv1connect.TransferServiceUploadProcedure:   access.Write, // examines what it stores

	stetv1connect.CheckpointServiceListProcedure:       access.Read,
	stetv1connect.CheckpointServiceGetProcedure:        access.Read,
	stetv1connect.CheckpointServiceFilesProcedure:      access.Read,
	stetv1connect.CheckpointServiceFileProcedure:       access.Read,
	stetv1connect.CheckpointServiceDiffProcedure:       access.Read,
	stetv1connect.CheckpointServiceBlameProcedure:      access.Read,
	stetv1connect.CheckpointServiceOperationsProcedure: access.Read,
	stetv1connect.CheckpointServiceListPinsProcedure:   access.Read,
	stetv1connect.CheckpointServicePlanRewindProcedure: access.Read,
	stetv1connect.CheckpointServiceCreateProcedure:     access.Write,
	stetv1connect.CheckpointServicePinProcedure:        access.Write,
	stetv1connect.CheckpointServiceUnpinProcedure:      access.Write,
	stetv1connect.CheckpointServiceRewindProcedure:     access.Write,
	stetv1connect.CheckpointServiceUndoProcedure:       access.Write,
	stetv1connect.CheckpointServiceRedoProcedure:       access.Write,

	stetv1connect.PageServiceOverviewProcedure: access.Read,
	stetv1connect.PageServiceTimelineProcedure: access.Read,
	stetv1connect.PageServiceGraphProcedure:    access.Read,
	stetv1connect.PageServiceStorageProcedure:  access.Read,
	stetv1connect.PageServiceAttemptsProcedure: access.Read,
	stetv1connect.PageServiceFollowProcedure:   access.Read,

	stetv1connect.CloudAgentServiceGetProcedure:          access.Read,
	stetv1connect.CloudAgentServiceListProcedure:         access.Read,
	stetv1connect.CloudAgentServiceWatchProcedure:        access.Read,
	stetv1connect.CloudAgentServiceSetSnapshotProcedure:  access.Write,
	stetv1connect.CloudAgentServiceCreateProcedure:       access.Write,
	stetv1connect.CloudAgentServiceAppendUpdateProcedure: access.Write,
	stetv1connect.CloudAgentServiceSaveStateProcedure:    access.Write,
	stetv1connect.CloudAgentServiceSetStatusProcedure:    access.Write,
	stetv1connect.CloudAgentServiceArchiveProcedure:      access.Write,
	stetv1connect.CloudAgentServiceSnapshotProcedure:     access.Write, // may store an upload

	stetv1connect.DocumentServiceGetProcedure:         access.Read,
	stetv1connect.DocumentServiceListProcedure:        access.Read,
	stetv1connect.DocumentServiceCollectionsProcedure: access.Read,
	stetv1connect.DocumentServiceCommitProcedure:      access.Write,

	stetv1connect.ThreadServiceGetProcedure:        access.Read,
	stetv1connect.ThreadServiceListProcedure:       access.Read,
	stetv1connect.ThreadServiceThreadsProcedure:    access.Read,
	stetv1connect.ThreadServicePutProcedure:        access.Write,
	stetv1connect.ThreadServicePutWritesProcedure:  access.Write,
	stetv1connect.ThreadServiceDeleteProcedure:     access.Write,
	stetv1connect.ThreadServiceCopyProcedure:       access.Write,
	stetv1connect.ThreadServicePruneProcedure:      access.Write,
	stetv1connect.ThreadServiceDeleteRunsProcedure: access.Write,

	aiserverv1connect.BackgroundComposerServiceStreamConversationProcedure:              access.Read,
	aiserverv1connect.BackgroundComposerServiceGetLatestAgentConversationStateProcedure: access.Read,
	aiserverv1connect.BackgroundComposerServiceGetBlobForAgentKVProcedure:               access.Read,

	agentv1connect.AgentServiceRunProcedure: access.Write, // model calls cost money
}

// endless are the streams that do not end by themselves. They are ended first when
// the server stops.
var endless = map[string]bool{
	stetv1connect.RowServiceWatchProcedure:                                 true,
	aiserverv1connect.BackgroundComposerServiceStreamConversationProcedure: true,
	stetv1connect.PageServiceFollowProcedure:                               true,
	stetv1connect.CloudAgentServiceWatchProcedure:                          true,
}

// scopeOf returns the required scope of a procedure.
func scopeOf(procedure string) access.Scope {
	if s, ok := scopes[procedure]; ok {
		return s
	}
	return access.Admin
}

// streaming holds the procedures of a kind.
func streaming(services []string, kind func(protoreflect.MethodDescriptor) bool) map[string]bool {
	streams := make(map[string]bool)
	for procedure, method := range procedures(services) {
		if kind(method) {
			streams[procedure] = true
		}
	}
	return streams
}

func isStream(m protoreflect.MethodDescriptor) bool {
	return m.IsStreamingClient() || m.IsStreamingServer()
}

// procedures returns the methods of services by the path that calls them.
func procedures(services []string) map[string]protoreflect.MethodDescriptor {
	all := make(map[string]protoreflect.MethodDescriptor)
	for _, name := range services {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
		service, ok := d.(protoreflect.ServiceDescriptor)
		if err != nil || !ok {
			continue
		}
		for i := range service.Methods().Len() {
			m := service.Methods().Get(i)
			all["/"+name+"/"+string(m.Name())] = m
		}
	}
	return all
}
