package main

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// cloud speaks EC2's Query API. The SDK's client would add a minute and a half of compiling for the
// six calls below.
type cloud struct {
	url, region string
}

type volume struct {
	ID          string       `xml:"volumeId"`
	GiB         int64        `xml:"size"`
	Zone        string       `xml:"availabilityZone"`
	Attachments []attachment `xml:"attachmentSet>item"`
}

type attachment struct {
	Instance string `xml:"instanceId"`
	Device   string `xml:"device"`
}

type refusal struct {
	Code    string `xml:"Errors>Error>Code"`
	Message string `xml:"Errors>Error>Message"`
}

// inCSI is the refusal with the code that the CSI specification has for it.
func (r refusal) inCSI() error {
	code := codes.Internal
	switch {
	case strings.HasSuffix(r.Code, ".NotFound"):
		code = codes.NotFound
	case r.Code == "VolumeInUse":
		code = codes.FailedPrecondition
	case strings.HasPrefix(r.Code, "InvalidParameter"):
		code = codes.InvalidArgument
	}
	return status.Errorf(code, "EC2 refuses: %s: %s", r.Code, r.Message)
}

// nameTag is where the EBS driver keeps the name that makes CreateVolume idempotent.
const nameTag = "CSIVolumeName"

func (c *cloud) create(ctx context.Context, name, kind, zone string, gib int64) (volume, error) {
	var created volume
	err := c.call(ctx, "CreateVolume", url.Values{
		"AvailabilityZone":                {zone},
		"Size":                            {strconv.FormatInt(gib, 10)},
		"VolumeType":                      {kind},
		"TagSpecification.1.ResourceType": {"volume"},
		"TagSpecification.1.Tag.1.Key":    {nameTag},
		"TagSpecification.1.Tag.1.Value":  {name},
	}, &created)
	return created, err
}

func (c *cloud) remove(ctx context.Context, id string) error {
	return c.call(ctx, "DeleteVolume", url.Values{"VolumeId": {id}}, nil)
}

func (c *cloud) attach(ctx context.Context, id, instance, device string) error {
	return c.call(ctx, "AttachVolume", url.Values{
		"VolumeId": {id}, "InstanceId": {instance}, "Device": {device},
	}, nil)
}

func (c *cloud) detach(ctx context.Context, id, instance string) error {
	return c.call(ctx, "DetachVolume", url.Values{"VolumeId": {id}, "InstanceId": {instance}}, nil)
}

func (c *cloud) resize(ctx context.Context, id string, gib int64) error {
	return c.call(ctx, "ModifyVolume", url.Values{
		"VolumeId": {id}, "Size": {strconv.FormatInt(gib, 10)},
	}, nil)
}

func (c *cloud) find(ctx context.Context, id string) (volume, error) {
	volumes, err := c.describe(ctx, url.Values{"VolumeId.1": {id}})
	if err != nil {
		return volume{}, err
	}
	if len(volumes) == 0 {
		return volume{}, status.Errorf(codes.NotFound, "there is no volume %s", id)
	}
	return volumes[0], nil
}

func (c *cloud) filter(ctx context.Context, name, value string) ([]volume, error) {
	return c.describe(ctx, url.Values{"Filter.1.Name": {name}, "Filter.1.Value.1": {value}})
}

func (c *cloud) describe(ctx context.Context, which url.Values) ([]volume, error) {
	var answer struct {
		Volumes []volume `xml:"volumeSet>item"`
	}
	err := c.call(ctx, "DescribeVolumes", which, &answer)
	return answer.Volumes, err
}

// call asks, and reads the answer unless nobody wants it. Its errors have CSI's codes.
func (c *cloud) call(ctx context.Context, action string, form url.Values, answer any) error {
	form.Set("Action", action)
	form.Set("Version", "2016-11-15")
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	// Nobody checks the signature, but service and region are read from its scope.
	request.Header.Set("Authorization", fmt.Sprintf(
		"AWS4-HMAC-SHA256 Credential=test/20260101/%s/ec2/aws4_request, SignedHeaders=host, Signature=0", c.region))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return status.Errorf(codes.Unavailable, "EC2 does not answer: %v", err)
	}
	defer response.Body.Close()
	decoder := xml.NewDecoder(response.Body)
	if response.StatusCode != http.StatusOK {
		refused := refusal{Code: response.Status}
		_ = decoder.Decode(&refused) // what is no XML has a status at least
		return refused.inCSI()
	}
	if answer == nil {
		return nil
	}
	return decoder.Decode(answer)
}
